"""The error for a missing optional package names the extra that installs it."""

import math
import sys

import pytest

from aucforest._optional import import_optional


def test_a_module_is_returned_or_the_error_is_one_sentence(monkeypatch):
    assert import_optional("math", purpose="counting", extra="none") is math
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"^plotting needs matplotlib: pip install aucforest\[plot\]$"):
        import_optional("matplotlib.pyplot", purpose="plotting", extra="plot")
