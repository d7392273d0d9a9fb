"""After an error an object is as it was."""

from types import SimpleNamespace

import pytest

from aucforest._restoring import restoring


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_attributes_come_back_after_an_error(error):
    model = SimpleNamespace(kept=1, replaced=2, removed=3)

    def fail():
        model.replaced, model.added = 4, 5
        del model.removed
        raise error

    with pytest.raises(error), restoring(model):
        fail()
    assert vars(model) == {"kept": 1, "replaced": 2, "removed": 3}


def test_without_an_error_changes_stay():
    model = SimpleNamespace(replaced=2)
    with restoring(model):
        model.replaced = 4
    assert model.replaced == 4
