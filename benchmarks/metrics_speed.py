"""How fast are the metrics? One thread, scikit-learn as the peer wherever it has the metric."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _timing import interleaved
from sklearn import metrics as peer

from aucforest import metrics as ours

Metric = Callable[..., Any]


def two_classes(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return integer labels, 30 % positive, and normal scores."""
    rng = np.random.default_rng(0)
    y_true = (rng.random(n_rows) < 0.3).astype(int)
    return y_true, rng.normal(size=n_rows) + y_true


def many_classes(n_rows: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return integer labels and probabilities that sum to 1."""
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, n_classes, n_rows)
    scores = np.exp(rng.normal(size=(n_rows, n_classes)) + np.eye(n_classes)[y_true])
    return y_true, scores / scores.sum(axis=1, keepdims=True)


def compare(
    name: str,
    our: Metric,
    their: Metric,
    rows: tuple[np.ndarray, np.ndarray],
    *,
    repeats: int,
    goal: str = "",
    **options: Any,
) -> None:
    """Check that both agree, which also warms both up, then print their times."""
    runs = {"ours": partial(our, *rows, **options), "peer": partial(their, *rows, **options)}
    np.testing.assert_allclose(runs["ours"](), runs["peer"](), rtol=1e-10)
    seconds = interleaved(runs, repeats)
    ratio = seconds["peer"] / seconds["ours"]
    print(f"{name:<46}{1e3 * seconds['ours']:>10.3f}{1e3 * seconds['peer']:>11.2f}{ratio:>8.1f}  {goal}")


def compare_two_classes() -> None:
    """Time ROC AUC by rows, dtype, ties, weights and labels, then what else takes two classes."""
    auc = partial(compare, our=ours.roc_auc_score, their=peer.roc_auc_score)
    for n_rows, repeats, goal in (
        (10**4, 51, ">= 15"),
        (10**5, 21, ""),
        (10**6, 9, ">= 8"),
        (10**7, 3, ">= 8"),
    ):
        auc(f"roc_auc_score, {n_rows:.0e} rows", rows=two_classes(n_rows), repeats=repeats, goal=goal)
    y, s = two_classes(10**6)
    weights = np.random.default_rng(1).exponential(size=y.size)
    print("1e+06 rows:")
    auc("  float32", rows=(y, s.astype(np.float32)), repeats=9, goal=">= 12")
    auc("  100 distinct scores", rows=(y, np.round(12.5 * s) / 12.5), repeats=9)
    auc("  weights", rows=(y, s), repeats=9, sample_weight=weights)
    auc("  string labels", rows=(np.where(y == 1, "yes", "no"), s), repeats=9)
    compare("  roc_curve", ours.roc_curve, peer.roc_curve, (y, s), repeats=5)
    compare(
        "  average_precision_score",
        ours.average_precision_score,
        peer.average_precision_score,
        (y, s),
        repeats=5,
    )


def compare_many_classes() -> None:
    """Time Hand and Till's mean against the one-against-one average."""
    their = partial(peer.roc_auc_score, multi_class="ovo")
    for n_classes, repeats, goal in ((3, 9, ">= 12"), (10, 5, ">= 20"), (50, 3, ">= 30")):
        name, rows = f"hand_till_score, 1e+05 rows, {n_classes} classes", many_classes(10**5, n_classes)
        compare(name, ours.hand_till_score, their, rows, repeats=repeats, goal=goal)


if __name__ == "__main__":
    print(f"{'':<46}{'ours, ms':>10}{'peer, ms':>11}{'ratio':>8}  goal")
    compare_two_classes()
    compare_many_classes()
