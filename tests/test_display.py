"""Results are shown as HTML tables in notebooks. tests/inspection tests the base class of plots."""

import matplotlib.pyplot as plt
import numpy as np
import pandas

from aucforest._display import HtmlTable
from aucforest._optional import import_optional

plt.switch_backend("agg")


class Result(HtmlTable):
    def _table(self):
        return pandas.DataFrame({"value": [0.123456789, np.nan]})

    def __repr__(self):
        return "a < b\nmore"


def test_a_table_in_a_notebook(monkeypatch):
    html = Result()._repr_html_()
    assert html.startswith("<p>a &lt; b</p><table")
    assert "0.123457" in html
    monkeypatch.setattr(Result, "_table", lambda self: import_optional("no_such_module", purpose="it", extra="frame"))
    assert Result()._repr_html_() is None
