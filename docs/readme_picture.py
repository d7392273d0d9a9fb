"""Draw the picture of the README: what two criteria think of every cut, and what forests reach with them."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from aucforest.datasets import load_abalone, load_page_blocks
from aucforest.inspection import compare_criteria

PICTURE = Path(__file__).parent / "images" / "criteria.png"
COLORS = {"auc": "C0", "gini": "0.45"}
DEPTHS = (1, 2, 3, 4, 6, 8, None)


def scores_of_cuts(x, y):
    """Return the thresholds between values, both scores, and the shares of rows and of ones on the right."""
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    last = np.flatnonzero(np.diff(x))
    p_right = (len(y) - 1 - last) / len(y)
    beta = 1 - np.cumsum(y)[last] / y.sum()
    alpha = 1 - np.cumsum(~y)[last] / (~y).sum()
    q = y.mean()
    auc = (1 + np.abs(beta - alpha)) / 2
    gini = 2 * (q * (1 - q) * (beta - alpha)) ** 2 / (p_right * (1 - p_right))
    return (x[last] + x[last + 1]) / 2, {"auc": auc, "gini": gini}, p_right, beta


def draw_cuts(panel, x, y):
    """Draw both scores, each scaled to its largest value."""
    thresholds, scores, p_right, beta = scores_of_cuts(x, y)
    for name, score in scores.items():
        gain = score - score.min()
        best = gain.argmax()
        label = f"{name}: best cut sends {p_right[best]:.0%} of all, {beta[best]:.0%} of the old ones right"
        panel.plot(thresholds, gain / gain.max(), color=COLORS[name], label=label)
        panel.axvline(thresholds[best], color=COLORS[name], linestyle="--", linewidth=1)
    panel.set(xlabel="cut of the shell weight (g / 200)", ylabel="score, as a share of the best", ylim=(0, 1.4))
    panel.set_title("old abalone: two opinions of the same cuts", fontsize=10)
    panel.legend(loc="upper right", frameon=False, fontsize=8)


def draw_forests(panel, data):
    """Draw by how much forests of AUC trees beat forests of Gini trees, for trees of some depths."""
    places = np.arange(len(DEPTHS))
    for k, (title, (X, y)) in enumerate(data.items()):
        rows = [
            compare_criteria(
                X, y, metrics=["roc_auc"], n_repeats=5, random_state=0, n_jobs=-1, max_depth=depth
            ).summary()[0]
            for depth in DEPTHS
        ]
        middle = [row.difference for row in rows]
        ends = np.transpose(
            [(row.difference - row.difference_low, row.difference_high - row.difference) for row in rows]
        )
        panel.errorbar(
            places + 0.12 * (k - 1),
            middle,
            ends,
            fmt="o-",
            color=f"C{k}",
            markersize=4,
            linewidth=1,
            label=title,
        )
    panel.axhline(0, color=COLORS["gini"], linestyle="--", linewidth=1)
    panel.set_xticks(places, ["unlimited" if depth is None else depth for depth in DEPTHS])
    panel.set(xlabel="max_depth", ylabel="ROC AUC, auc less gini")
    panel.set_title("100 trees: gain on held-out rows, 25 folds, 95 % intervals", fontsize=10)
    panel.legend(loc="upper right", frameon=False, fontsize=8)


def main():
    abalone, blocks = load_abalone(), load_page_blocks()
    old = abalone.target >= 18
    data = {
        "abalone, rings ≥ 18 (3.3 %)": (abalone.data, old),
        "page blocks, pictures (0.5 %)": (blocks.data, blocks.target == 2),
        "page blocks, 5 classes": (blocks.data, blocks.target),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    draw_cuts(left, abalone.data[:, abalone.feature_names.index("shell_weight")], old)
    draw_forests(right, data)
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=110)
    print(PICTURE)


if __name__ == "__main__":
    main()
