"""The notice that compiling takes long."""

from types import SimpleNamespace

import pytest

from aucforest import _dispatchers
from aucforest._compile import kernel


def add_one(x):
    return x + 1


def test_compilation_is_told_once_until_there_is_a_pause(monkeypatch):
    said, now = [], [100.0]
    monkeypatch.setattr(_dispatchers, "say", said.append)
    monkeypatch.setattr(_dispatchers, "time", SimpleNamespace(monotonic=lambda: now[0]))
    watch = _dispatchers._Watch()

    def compile_for(seconds, module="aucforest.tree.growing"):
        dispatcher = SimpleNamespace(py_func=SimpleNamespace(__module__=module))
        event = SimpleNamespace(data={"dispatcher": dispatcher})
        watch.on_start(event)
        now[0] += seconds
        watch.on_start(event)
        watch.on_end(event)
        watch.on_end(event)

    compile_for(0.9)
    compile_for(9.0, "somebody.else")
    compile_for(9.0, None)
    compile_for(0.5)
    assert said == []
    compile_for(2.0)
    compile_for(2.0)
    sentence = "aucforest is compiled for this machine, which takes 10 to 30 seconds, once"
    assert said == [sentence]
    now[0] += 60.0
    compile_for(2.0)
    assert said == [sentence, sentence]


def test_the_notice_says_how_often_code_is_compiled(monkeypatch):
    """A folder for the cache helps only if there is one to set."""
    monkeypatch.setattr(_dispatchers, "_watch", watch := SimpleNamespace(how_often="once"))
    kernel(add_one).made
    assert watch.how_often == "once"
    # no file, so there is no folder beside it
    kernel(eval("lambda x: x")).made
    assert watch.how_often == "in each process: set NUMBA_CACHE_DIR to a folder for its cache"
    monkeypatch.setattr(_dispatchers, "_numba_private", _dispatchers._numba_private)
    with pytest.warns(RuntimeWarning, match=r"does not know numba .*: ImportError: no module$"):
        _dispatchers._do_without(ImportError("no module"))
    assert kernel(add_one).made(1) == 2
    assert watch.how_often == "in each process, because it cannot cache code of this version of numba"
