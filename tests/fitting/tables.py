"""Arrow tables with all kinds of columns, and parameters of forests that are fitted to them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from aucforest import AUCForestClassifier
from aucforest.fitting import on_disk
from aucforest.fitting.plan import plan_on_disk


def make_rows(n=3000, seed=0, n_classes=2):
    """Return a table of every kind of column with gaps, labels of text, and weights of which some are 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    many = np.char.add("c", np.minimum(rng.geometric(0.01, n), 400).astype(str))
    level = X[:, 0] + 0.5 * X[:, 1] + 0.3 * (many < "c2") + rng.normal(size=n)
    cuts = np.quantile(level, np.sqrt(np.linspace(0, 1, n_classes + 1)[1:-1]))

    def gaps():
        return rng.random(n) < 0.1

    return pa.table({
        "double": pa.array(X[:, 0], mask=gaps()), "float": X[:, 1].astype(np.float32),
        "nan": np.where(gaps(), np.nan, X[:, 2]), "few": pa.array(np.round(X[:, 3]).astype(np.int16), mask=gaps()),
        "text": pa.array(many, mask=gaps()),
        "coded": pa.array(rng.choice(["u", "v", "w"], n), mask=gaps()).dictionary_encode(),
        "flag": pa.array(rng.random(n) < 0.4, mask=gaps()), "nothing": pa.nulls(n, pa.float64()),
        "weight": rng.choice([0.0, 0.5, 1.0, 2.25], n),
        "label": np.array(["a", "b", "c"])[np.searchsorted(cuts, level)],
    })  # fmt: skip


def make_many(n=900, seed=0, n_classes=2):
    """Return a table with 120 shops and 70 postcodes, both with gaps, numbers, customers, weights and labels.

    The effect of a shop flips with the sign of a number.
    """
    rng = np.random.default_rng(seed)
    numbers, shop, postcode = rng.normal(size=(n, 2)), rng.integers(0, 120, n), rng.integers(0, 70, n)
    effect, of_postcode = 2.0 * rng.normal(size=120), rng.normal(size=70)
    level = effect[shop] * np.sign(numbers[:, 0]) + of_postcode[postcode] + rng.normal(size=n)
    cuts = np.quantile(level, np.sqrt(np.linspace(0, 1, n_classes + 1)[1:-1]))
    return pa.table({
        "shop": pa.array(np.char.add("shop ", shop.astype(str)), mask=rng.random(n) < 0.1), "sign": numbers[:, 0],
        "postcode": pa.array(10_000 + postcode, mask=rng.random(n) < 0.1), "other": numbers[:, 1],
        "customer": rng.integers(0, 150, n), "weight": rng.choice([0.0, 0.5, 1.0, 2.25], n),
        "label": np.array(["a", "b", "c"])[np.searchsorted(cuts, level)],
    })  # fmt: skip


def make_accounts(n=1800, seed=0, n_classes=2, *, with_regions=False):
    """Return a table of numbers, accounts with gaps, ages with a smooth effect, customers, weights and labels.

    A forest finds that the numbers of accounts are categories and, with regions, that ranges of them are categories,
    too. Customers have no effect.
    """
    rng = np.random.default_rng(seed)
    x, account, age = rng.normal(size=n), rng.integers(0, 200, n), rng.integers(18, 80, n)
    effect, numbers = 3.0 * rng.normal(size=200), 1_000 + 7 * np.arange(200)
    if with_regions:  # five accounts share their first digits
        regions, last_digits = np.divmod(np.arange(200), 5)
        effect, numbers = effect[regions] + effect / 4.0, 1_000 + 10 * regions + last_digits
    level = effect[account] + x + np.abs(age - 40) / 20 + rng.logistic(size=n)
    cuts = np.quantile(level, np.sqrt(np.linspace(0, 1, n_classes + 1)[1:-1]))
    return pa.table({
        "x": x, "account": pa.array(numbers[account], mask=rng.random(n) < 0.05), "age": age.astype(np.int16),
        "customer": rng.integers(0, 700, n), "weight": rng.choice([0.0, 0.5, 1.0, 2.25], n),
        "label": np.array(["a", "b", "c"])[np.searchsorted(cuts, level)],
    })  # fmt: skip


# Both categorical columns of `make_many` get target rates. They are named in another order than that of the table.
RATED = {"categorical_features": ["postcode", "shop"], "n_estimators": 40}


def features_and_labels(table, drop=()):
    """Return X and y for `fit`."""
    return table.drop_columns(["weight", "label", *drop]), np.array(table["label"].to_pylist())


def make_forest(**params):
    return AUCForestClassifier(**{"n_estimators": 6, "random_state": 3, "n_jobs": 2, **params})


def interactions_of(forest):
    """Return the pairs of features whose cells have target rates."""
    return [(table.feature, table.other) for table in forest.target_rates_.tables if table.is_interaction]


def copy_rows(monkeypatch):
    """Let trees out of core grow from copies of their rows."""

    def plan(*arguments, **options):
        return replace(plan_on_disk(*arguments, **options), copies_rows=True)

    monkeypatch.setattr(on_disk, "plan_on_disk", plan)
