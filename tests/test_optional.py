"""A missing optional package is named with the extra that brings it."""

import math
import sys

import pytest

from aucforest._optional import import_optional


def test_an_installed_module_is_returned():
    assert import_optional("math", purpose="counting", extra="none") is math


def test_the_error_of_a_missing_module_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"^plotting needs matplotlib: pip install aucforest\[plot\]$"):
        import_optional("matplotlib.pyplot", purpose="plotting", extra="plot")
