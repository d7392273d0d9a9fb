"""After an error, an object has its old attributes."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from aucforest._restoring import restoring


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, None])
def test_attributes_are_restored_only_after_an_error(error):
    model = SimpleNamespace(kept=1, replaced=2, removed=3)
    with nullcontext() if error is None else pytest.raises(error), restoring(model):
        model.replaced, model.added = 4, 5
        del model.removed
        if error is not None:
            raise error
    changed = {"kept": 1, "replaced": 4, "added": 5}
    assert vars(model) == (changed if error is None else {"kept": 1, "replaced": 2, "removed": 3})
