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


def interleaved(functions: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each function; all take turns, so that a slow spell hits all of them.

    The caller warms up what it wants warm.
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = perf_counter()
            function()
            seconds[name].append(perf_counter() - start)
    return {name: median(times) for name, times in seconds.items()}


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
