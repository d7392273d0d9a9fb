"""Data, a parser of pages, and options of quick reports for the tests of reports."""

import json
from html.parser import HTMLParser

from tests.estimators.data import make_table

X, Y = make_table(n_rows=500, missing=0.0, seed=3)
X3, Y3 = make_table(n_rows=500, n_classes=3, missing=0.0, seed=1)
TRAIN, TEST = slice(0, 300), slice(300, 500)
QUICK = {"n_bootstrap": 20, "n_repeats": 1, "random_state": 0}
BARE = QUICK | {"n_repeats": 0}  # without importances
FOREST_OPTIONS = QUICK | {"X_train": X[TRAIN], "y_train": Y[TRAIN], "cost": [[0, 1], [7, 0]], "title": 'a "b"'}


class Page(HTMLParser):
    """The tables of a page by caption, its headings, its pictures' texts and the explorer's data."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.headings, self.alts, self.ids, self.tags = {}, [], [], [], []
        self.explorer, self._text, self._rows = None, "", []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self._text = ""
        self.tags.append((tag, attributes))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "svg":
            self.alts.append(attributes["aria-label"])
        elif tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])

    def handle_data(self, data):
        self._text += data

    def handle_endtag(self, tag):
        text = self._text.strip()
        if tag == "caption":
            self._caption = text
        elif tag in ("td", "th"):
            self._rows[-1].append(text)
        elif tag == "table":
            self.tables[self._caption] = self._rows
        elif tag in ("h1", "h2"):
            self.headings.append(text)
        elif tag == "script" and text.startswith("{"):
            self.explorer = json.loads(text)
        self._text = ""


def figures(page, caption):
    return {row[0]: row[1:] for row in page.tables[caption][1:]}


def printed(value):
    return float(value.replace(",", "").replace("−", "-"))
