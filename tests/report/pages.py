"""Data, a parser of pages, and options of quick reports for the tests of reports."""

import html
import json
import re
from html.parser import HTMLParser

from tests.estimators.data import make_table

X, Y = make_table(n_rows=500, missing=0.0, seed=3)
X3, Y3 = make_table(n_rows=500, n_classes=3, missing=0.0, seed=1)
TRAIN, TEST = slice(0, 300), slice(300, 500)
QUICK = {"n_bootstrap": 20, "n_repeats": 1, "random_state": 0}
BARE = QUICK | {"n_repeats": 0}  # without importances
FOREST_OPTIONS = QUICK | {"X_train": X[TRAIN], "y_train": Y[TRAIN], "cost": [[0, 1], [7, 0]], "title": 'a "b"'}


def texts(pattern, page):
    return [html.unescape(text).strip() for text in re.findall(pattern, page, flags=re.DOTALL)]


class Page(HTMLParser):
    """The tags of a page, its headings, its tables by caption and the explorer's data."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.feed(page)
        self.ids = [attributes["id"] for _, attributes in self.tags if "id" in attributes]
        self.alts = [attributes["aria-label"] for tag, attributes in self.tags if tag == "svg"]
        self.headings = texts("<h[12].*?>(.*?)</h[12]>", page)
        self.tables = {}
        for table in re.findall("<table>.*?</table>", page, flags=re.DOTALL):
            rows = re.findall("<tr.*?</tr>", table, flags=re.DOTALL)
            (caption,) = texts("<caption>(.*?)</caption>", table)
            self.tables[caption] = [texts("<t[hd].*?>(.*?)</t[hd]>", row) for row in rows]
        explorer = re.search('id="explorer-data">(.*?)</script>', page)
        self.explorer = explorer and json.loads(explorer[1])

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def figures(page, caption):
    return {row[0]: row[1:] for row in page.tables[caption][1:]}


def printed(value):
    return float(value.replace(",", "").replace("−", "-"))
