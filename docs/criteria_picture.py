"""Draw the picture of the criteria: how two of them score every split, and what forests reach with them."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from aucforest.datasets import load_abalone, load_page_blocks
from aucforest.inspection import compare_criteria

PICTURE = Path(__file__).parent / "images" / "criteria.png"
COLORS = {"auc": "C0", "gini": "0.45"}
DEPTHS = (1, 2, 3, 4, 6, 8, None)


def auc_gain(left, node):
    """Return the AUC of a split above one half, from the class totals left and in the node."""
    on_left = left / node
    return 0.5 * abs(on_left[1] - on_left[0])


def gini_gain(left, node):
    """Return the decrease of the Gini impurity by a split."""

    def impurity(totals):
        return 1.0 - np.sum((totals / totals.sum()) ** 2)

    right, share = node - left, left.sum() / node.sum()
    return impurity(node) - share * impurity(left) - (1.0 - share) * impurity(right)


GAINS = {"auc": auc_gain, "gini": gini_gain}


def draw_splits(panel, x, old):
    """Draw the gain of every split of a feature by both criteria, relative to the best; mark the best splits."""
    values, places = np.unique(x, return_inverse=True)
    totals = np.zeros((len(values), 2), dtype=np.int64)
    np.add.at(totals, (places, old.astype(int)), 1)
    totals = totals.cumsum(axis=0)
    thresholds, lefts, node = 0.5 * (values[1:] + values[:-1]), totals[:-1], totals[-1]
    for name, color in COLORS.items():
        gains = np.array([GAINS[name](left, node) for left in lefts])
        best = gains.argmax()
        young, old_ones = 1.0 - lefts[best] / node
        label = f"{name}: best split sends {old_ones:.0%} of the old, {young:.0%} of the young right"
        panel.plot(thresholds, gains / gains[best], color=color, label=label)
        panel.axvline(thresholds[best], color=color, linestyle="--", linewidth=1)
    panel.set(xlabel="threshold of the shell weight (g / 200)", ylabel="gain / best gain", ylim=(0, 1.4))
    panel.set_title("old abalone: two scores of the same splits", fontsize=10)
    panel.legend(loc="upper right", frameon=False, fontsize=8)


def draw_forests(panel, data):
    """Draw the difference in ROC AUC of forests of AUC trees from forests of Gini trees, by depth."""
    places = np.arange(len(DEPTHS))
    for k, (title, (X, y)) in enumerate(data.items()):
        rows = [
            compare_criteria(
                X,
                y,
                criteria=["auc", "gini"],
                metrics=["roc_auc"],
                n_repeats=5,
                random_state=0,
                n_jobs=-1,
                max_depth=depth,
                n_estimators=100,
                verbose=0,
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
    draw_splits(left, abalone.data[:, abalone.feature_names.index("shell_weight")], old)
    draw_forests(right, data)
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=110)
    print(PICTURE)


if __name__ == "__main__":
    main()
