"""A table with columns of many categories, whose effect depends on the sign of a number."""

import numpy as np
import pyarrow as pa

N_ROWS = 900


def make_many(n_rows=N_ROWS, seed=0, n_classes=2):
    """Return a table with about 120 categories of text, 70 of whole numbers, numbers, groups, weights and labels.

    There are gaps in both columns of categories, and a tenth of the weights is 0.
    """
    rng = np.random.default_rng(seed)
    numbers, shop = rng.normal(size=(n_rows, 2)), rng.integers(0, 120, n_rows)
    postcode = rng.integers(0, 70, n_rows)
    effect, of_postcode = rng.normal(size=120) * 2.0, rng.normal(size=70)
    # The effect of a shop flips with the sign of a number.
    level = effect[shop] * np.sign(numbers[:, 0]) + of_postcode[postcode] + rng.normal(size=n_rows)
    cuts = np.quantile(level, np.sqrt(np.linspace(0, 1, n_classes + 1)[1:-1]))
    return pa.table({
        "shop": pa.array(np.char.add("shop ", shop.astype(str)), mask=rng.random(n_rows) < 0.1),
        "sign": numbers[:, 0],
        "postcode": pa.array(10_000 + postcode, mask=rng.random(n_rows) < 0.1),
        "other": numbers[:, 1],
        "customer": rng.integers(0, 150, n_rows),
        "weight": np.where(rng.random(n_rows) < 0.1, 0.0, rng.choice([0.5, 1.0, 2.25], n_rows)),
        "label": np.array(["a", "b", "c"])[np.searchsorted(cuts, level)],
    })  # fmt: skip


def assert_same_rates(one, other):
    """Compare the target rates of two forests."""
    assert (one is None) == (other is None)
    if one is None:
        return
    assert len(one.tables) == len(other.tables)
    for mine, yours in zip(one.tables, other.tables):
        for name, value in mine._asdict().items():
            assert np.array_equal(value, getattr(yours, name)), name
    for name in ("classes", "frequencies", "factors"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
