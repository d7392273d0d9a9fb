"""Progress bars in terminals, notebooks and logs, and messages for terminals and notebooks."""

import io
import sys
import time

from aucforest import _progress
from aucforest._progress import is_watched, progress_bar, say


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class OutStream(io.StringIO):
    """The output of a notebook, which is no terminal."""


OutStream.__module__ = "ipykernel.iostream"


def written(stream, monkeypatch, verbose=1):
    monkeypatch.setattr(sys, "stderr", stream)
    for _ in progress_bar(range(40), desc="trees", verbose=verbose):
        time.sleep(0.01 * verbose)
    return stream.getvalue().strip().split("\r")


def test_bars_in_logs_are_updated_rarely(monkeypatch):
    states = written(io.StringIO(), monkeypatch)
    assert len(states) == 2
    assert "40/40" in states[-1]
    for watched in (Terminal, OutStream):
        assert len(written(watched(), monkeypatch)) > 3
    assert written(Terminal(), monkeypatch, verbose=0) == [""]
    monkeypatch.setattr(_progress, "_LOG_INTERVAL", 0.1)
    assert len(written(io.StringIO(), monkeypatch)) > 3


def test_messages_are_only_written_to_terminals_and_notebooks(monkeypatch):
    for stream, expected in ((Terminal(), "one\n"), (OutStream(), "one\n"), (io.StringIO(), "")):
        monkeypatch.setattr(sys, "stderr", stream)
        say("one")
        assert stream.getvalue() == expected
    monkeypatch.setattr(sys, "stderr", None)
    assert not is_watched()
