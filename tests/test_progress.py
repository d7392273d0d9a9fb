"""Bars are drawn for whoever watches; a log gets a line in a while."""

import io
import sys
import time

from aucforest import _progress
from aucforest._progress import is_watched, progress_bar, say


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class OutStream(io.StringIO):
    """As of notebooks, whose output is no terminal."""


OutStream.__module__ = "ipykernel.iostream"


def written(stream, monkeypatch, verbose=1):
    monkeypatch.setattr(sys, "stderr", stream)
    for _ in progress_bar(range(40), desc="trees", verbose=verbose):
        time.sleep(0.01 * verbose)
    return stream.getvalue().strip().split("\r")


def test_a_log_gets_the_first_and_the_last_state_and_one_in_a_while(monkeypatch):
    states = written(io.StringIO(), monkeypatch)
    assert len(states) == 2
    assert "40/40" in states[-1]
    for watched in (Terminal, OutStream):
        assert len(written(watched(), monkeypatch)) > 3
    assert written(Terminal(), monkeypatch, verbose=0) == [""]
    monkeypatch.setattr(_progress, "_LOG_INTERVAL", 0.1)
    assert len(written(io.StringIO(), monkeypatch)) > 3


def test_sentences_are_for_whoever_watches(monkeypatch):
    for stream, expected in ((Terminal(), "one\n"), (OutStream(), "one\n"), (io.StringIO(), "")):
        monkeypatch.setattr(sys, "stderr", stream)
        say("one")
        assert stream.getvalue() == expected
    monkeypatch.setattr(sys, "stderr", None)
    assert not is_watched()
