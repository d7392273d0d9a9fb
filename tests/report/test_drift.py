"""Drift between training and test rows: the stability index by its definition, its limit, and the sentences."""

import math
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from aucforest.report import report
from aucforest.report.data import pair_columns, read_training
from aucforest.report.drift import drift_sections, measure_drift
from aucforest.report.rows import score_rows

N = 400


def stability_index(new, old):
    """Return the index of two lists of bins, 1/2 added to each count."""
    bins, shares = sorted(set(new) | set(old)), []
    for counts in (Counter(new), Counter(old)):
        smoothed = [counts[each] + 0.5 for each in bins]
        shares.append([count / sum(smoothed) for count in smoothed])
    return math.fsum((after - before) * math.log(after / before) for after, before in zip(*shares))


def table(seed):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "width": random.normal(size=N), "height": random.normal(size=N),
        "colour": random.choice(["red", "green", "blue"], N), "flag": random.random(N) < 0.3, "nothing": 1.0,
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(1000 * seed + np.arange(N), unit="D"),
    })  # fmt: skip
    frame.loc[:5, "width"] = np.nan
    return frame, random.random(N) < 0.3


def section_of(new, y, old, y_old):
    """Return the section on drift of two tables, and the cells of its table by column."""
    model = DummyClassifier().fit(old, y_old)
    rows, training = score_rows(model, new, y, None), read_training(model, old, y_old, None)
    (section,) = drift_sections(rows, training, pair_columns(rows, training), 0)
    return section, {row[0]: row[1:] for row in section.tables[0].rows}


def test_rows_of_the_same_source_have_not_drifted():
    (new, y), (old, y_old) = table(2), table(1)
    section, shown = section_of(new, y, old, y_old)
    assert section.lead.startswith("Columns that differ from the training rows by more than chance: none of 5. ")
    assert set(shown) == {"width", "height", "colour", "flag", "nothing"}  # days always drift
    assert shown["nothing"] == ["0", "0", "1"]
    edges = np.quantile(old["height"], np.arange(1, 10) / 10, method="lower")
    for name, bins in (("colour", list), ("height", lambda values: np.searchsorted(edges, values).tolist())):
        assert float(shown[name][0]) == pytest.approx(stability_index(bins(new[name]), bins(old[name])), abs=5e-4)
    auc, limit = map(float, re.findall(r"ROC AUC of (\S+) on .* above (\S+)\.$", section.points[0])[0])
    assert auc < limit == pytest.approx(0.5 + 1.645 * math.sqrt((2 * N + 1) / (12 * N * N)), abs=5e-4)
    assert section.points[1].endswith("class frequencies differ by no more than chance explains.")


def test_columns_with_drift_are_named():
    (new, _), (old, y_old) = table(2), table(1)
    new = new.assign(height=new["height"] + 1.0, colour=new["colour"].replace("red", "crimson"))
    section, shown = section_of(new, np.arange(N) < 20, old, y_old)
    assert "by more than chance: 2 of 5, most of all colour. " in section.lead
    assert list(shown)[:2] == ["colour", "height"]
    assert float(re.findall(r"ROC AUC of (\S+)", section.points[0])[0]) > 0.8
    of_labels = (
        r"[23]\d\.\d % of the training rows and 5\.00? % of these rows are of class True: .* by more than chance"
    )
    assert re.match(of_labels, section.points[1])


@pytest.mark.parametrize("n_bins", [2, 10])
def test_without_drift_one_in_twenty_is_beyond_the_limit(n_bins):
    """Of 400 pairs of samples 20 are expected; 4 standard deviations are 17."""
    random = np.random.default_rng(0)
    found = [measure_drift(tuple(random.integers(0, n_bins, n) for n in (300, 500))) for _ in range(400)]
    n_beyond = sum(psi > limit for psi, limit, _ in found)
    assert n_beyond == sum(pvalue < 0.05 for *_, pvalue in found)
    assert 3 <= n_beyond <= 37


def test_pages_on_one_model_and_on_several_have_the_section():
    (new, y), (old, y_old) = table(2), table(1)
    new, old = new[["height"]], old[["height"]]
    model = LogisticRegression().fit(old, y_old)
    options = {"X_train": old, "y_train": y_old, "n_bootstrap": 2, "n_repeats": 0, "random_state": 0}
    pages = [report(given, new, y, **options).html for given in (model, [model, model])]
    sections = [re.search('<section id="drift".*?</section>', page, flags=re.DOTALL).group() for page in pages]
    assert sections[0] == sections[1]
