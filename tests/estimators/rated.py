"""Tables with a column of many categories, which forests replace by target rates."""

import numpy as np
import pandas as pd

N_MERCHANTS = 80


def make_rated(n_rows=600, n_classes=2, seed=0):
    """Return a frame and labels that depend on merchants a lot, less on an amount, and little on a kind."""
    random = np.random.default_rng(seed)
    merchant, kind = random.integers(0, N_MERCHANTS, n_rows), random.integers(0, 3, n_rows)
    amount = random.normal(size=n_rows)
    score = np.random.default_rng(1).normal(0.0, 2.0, N_MERCHANTS)[merchant] + 0.7 * amount + 0.3 * kind
    score += random.logistic(size=n_rows)
    names = np.array([f"m{i:02}" for i in range(N_MERCHANTS)], dtype=object)
    kinds = pd.Categorical(np.array(list("abc"))[kind])
    X = pd.DataFrame({"merchant": pd.Categorical(names[merchant]), "amount": amount, "kind": kinds})
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def make_interaction(n_rows=1500, seed=0):
    """Return a frame and labels that depend on the pair of merchant and night; shops are noise."""
    random = np.random.default_rng(seed)
    merchant, night, shop = (random.integers(0, n, n_rows) for n in (60, 2, 300))
    effect = random.normal(0.0, 1.5, (60, 2))
    y = (effect[merchant, night] + random.logistic(size=n_rows) > 0).astype(int)
    X = pd.DataFrame({"merchant": merchant, "night": night, "shop": shop})
    return X.astype({"merchant": "category", "shop": "category"}), y
