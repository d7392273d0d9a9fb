"""`aucforest warm-up`. tests/test_packaging.py tests that it compiles all kernels."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from aucforest.__main__ import main
from aucforest._machine_code import Shipped, status
from aucforest.cli import warm_up as module


@pytest.mark.parametrize(("arguments", "is_native"), [(["warm-up"], None), (["warm-up", "--native"], "1")])
def test_native_ignores_shipped_code(arguments, is_native, monkeypatch, capsys):
    seen = []
    monkeypatch.setenv("AUCFOREST_NATIVE", "")  # so that it is restored
    monkeypatch.delenv("AUCFOREST_NATIVE")
    monkeypatch.setattr(module, "cpu_count", lambda: 1)
    monkeypatch.setattr(module, "compile_kernels", lambda: seen.append(os.environ.get("AUCFOREST_NATIVE")))
    monkeypatch.setattr(sys, "argv", ["aucforest", *arguments])
    main()
    assert seen == [is_native]
    assert capsys.readouterr().out == f"{status()}\n"


def test_warm_up_says_why_nothing_can_be_compiled(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["aucforest", "warm-up"])
    monkeypatch.setattr(module, "own_folder", lambda: None)
    monkeypatch.setattr(module, "shipped", Shipped)
    with pytest.raises(SystemExit, match=r"^there is no folder to keep machine code in: set NUMBA_CACHE_DIR to "):
        main()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(SystemExit, match=r"^NUMBA_DISABLE_JIT is set, so nothing can be compiled: unset it$"):
        main()


def test_the_second_process_goes_backward_and_ends_with_the_first(monkeypatch):
    monkeypatch.setattr(module, "cpu_count", lambda: 2)
    monkeypatch.setattr(module, "compile_kernels", lambda: None)
    with patch.object(module.subprocess, "Popen") as started:
        other = started.return_value.__enter__.return_value
        module.warm_up()
        backward = "from aucforest.cli.warm_up import compile_kernels; compile_kernels(-1)"
        assert started.call_args.args[0][-1] == backward
        assert (started.return_value.__exit__.call_count, other.kill.call_count) == (1, 0)
        monkeypatch.setattr(module, "compile_kernels", lambda: {}["interrupted"])
        started.return_value.__exit__.return_value = False
        with pytest.raises(KeyError):
            module.warm_up()
        assert (started.return_value.__exit__.call_count, other.kill.call_count) == (2, 1)


# A program that runs the command without the packages of the command line.
WARM_UP = """
import sys


class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("typer", "rich", "pandas", "pyarrow"):
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Absent())
sys.argv = ["aucforest", "warm-up"]
from aucforest.__main__ import main
if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_warming_up_needs_no_extra():
    Path("program.py").write_text(WARM_UP)
    finished = subprocess.run([sys.executable, "program.py"], capture_output=True, text=True)
    assert (finished.returncode, finished.stderr) == (0, "")
