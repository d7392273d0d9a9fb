"""NannyML in a process and an environment of its own, since it needs an older numpy and pandas than we do."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Self

HOW = (
    "NannyML is not measured: make it an environment and pass its interpreter, say\n"
    "    python3.11 -m venv peer\n"
    '    peer/bin/pip install nannyml==0.13.1 "pyarrow<18" "numpy<2" "pandas<2.3" "scikit-learn<1.6"\n'
    "    python benchmarks/monitoring_speed.py peer/bin/python"
)


class NannyML:
    """A worker that answers requests; see `_nannyml_worker.Worker` for the methods."""

    def __init__(self, python: str) -> None:
        worker = Path(__file__).with_name("_nannyml_worker.py")
        environment = {**os.environ, "NML_DISABLE_USAGE_LOGGING": "1"}  # it would report every fit, and wait for it
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([python, str(worker)], stdin=pipe, stdout=pipe, text=True, env=environment)
        self.version = self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, method: str, *arguments: str) -> Any:
        """Call a method of the worker and wait for what it returns."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([method, arguments]) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        """Return the next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process of NannyML ended early")
        return json.loads(line)
