"""The notice that compiling takes long."""

from types import SimpleNamespace

from aucforest import _dispatchers, _machine_code


def test_the_notice_is_printed_once_until_there_is_a_pause(monkeypatch):
    said, now = [], [100.0]
    monkeypatch.setattr(_dispatchers, "say", said.append)
    monkeypatch.setattr(_machine_code, "how_often", lambda: "once")
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

    for given in ((0.9,), (9.0, "somebody.else"), (9.0, None), (0.5,)):
        compile_for(*given)
    assert said == []
    for _ in range(2):
        compile_for(2.0)
    sentence = "aucforest is compiled for this machine, which takes a minute or two, once"
    assert said == [sentence]
    now[0] += 60.0
    compile_for(2.0)
    assert said == [sentence, sentence]
