"""The base of plots makes a figure of its own, or draws on given axes."""

import matplotlib.pyplot as plt
import numpy as np
import pandas

from aucforest._display import Display, HtmlTable
from aucforest._optional import import_optional

plt.switch_backend("agg")


def test_axes_are_new_or_given():
    class TwoPanels(Display):
        _panels, _size = (lambda self: {"nrows": 2}), (lambda self: (3.0, 2.0))
        _draw = lambda self, axes: [ax.plot([0.0, 1.0]) for ax in axes]  # noqa: E731

    new, axes = TwoPanels().plot(), plt.subplots(1, 2)[1]
    assert new.figure_.get_size_inches().tolist() == [3.0, 2.0]
    assert [len(ax.lines) for ax in new.ax_] == [1, 1]
    given = TwoPanels().plot(axes)
    assert given.ax_ is axes
    assert given.figure_ is axes[0].figure


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
