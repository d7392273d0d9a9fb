"""What every benchmark shares: interleaved repeats, fresh processes."""

import io
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # for what is under tests/


def take_turns(functions: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Return the seconds of functions that take turns, so that a slow spell hits all of them.

    The caller warms up what it wants warm.
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = perf_counter()
            function()
            seconds[name].append(perf_counter() - start)
    return seconds


def interleaved(functions: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each function; all take turns."""
    return {name: median(times) for name, times in take_turns(functions, repeats).items()}


def in_fresh_process(program: str, *, cold: bool = False) -> float:
    """Run a program in a new Python; return the number it prints. `cold` hides what numba compiled before."""
    return float(run_fresh(program, cold=cold))


def run_fresh(program: str, *, cold: bool = False, sources: Path = ROOT / "src") -> str:
    """Do the same and return all that it prints."""
    with tempfile.TemporaryDirectory() as empty:
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join([str(sources), environment.get("PYTHONPATH", "")])
        if cold:
            environment["NUMBA_CACHE_DIR"] = empty
        command = [sys.executable, "-c", program]
        finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return finished.stdout


PEAK_OF_FIT = """
import sys
sys.path.insert(0, {benchmarks!r})
import numpy as np
from pathlib import Path
from {module} import FITS

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

X, y = np.load({folder!r} + "/X.npy"), np.load({folder!r} + "/y.npy")
FITS[{name!r}](X[:1000].copy(), y[:1000].copy(), 2, *{more!r})  # loads libraries and compiled code
Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
before = status("VmRSS")
forest = FITS[{name!r}](X, y, {n_trees}, *{more!r})
print(status("VmHWM") - before)
"""


def peak_of_fit(folder: str, module: str, name: str, n_trees: int, *more: object) -> float:
    """Return the MiB that a fit of a module's FITS to X.npy and y.npy takes in a new process (Linux only)."""
    given = {"folder": folder, "module": module, "name": name, "n_trees": n_trees, "more": more}
    return in_fresh_process(PEAK_OF_FIT.format(benchmarks=str(Path(__file__).parent), **given)) / 2**20


def check_out(revision: str, folder: str) -> Path:
    """Write the sources of a revision to a folder and return the path to set as PYTHONPATH."""
    archive = subprocess.run(["git", "-C", ROOT, "archive", revision, "src"], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as sources:
        sources.extractall(folder, filter="data")
    return Path(folder) / "src"


def peak_rss_mib(usage: resource.struct_rusage | None = None) -> float:
    """Return the greatest memory that this process has held so far, or another one by its usage, in MiB."""
    peak = (usage or resource.getrusage(resource.RUSAGE_SELF)).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
