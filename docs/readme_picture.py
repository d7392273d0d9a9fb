"""Draw the picture of the README: mean AUC against fit time, and on how many sets the forest ranks better than a peer.

    python docs/readme_picture.py [--from ranking.csv]

It is drawn from docs/ranking.csv, the means by set and model of what benchmarks/ranking.py measured. `--from` writes
that file first, from the results of a new run.
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

HERE = Path(__file__).parent
RESULTS, PICTURE = HERE / "ranking.csv", HERE / "images" / "ranking.png"
OURS = "aucforest"
PEERS = ["scikit-learn", "extra trees", "balanced forest", "XGBoost", "LightGBM", "CatBoost"]
NAMES = {
    "scikit-learn": "scikit-learn's forest",
    "extra trees": "scikit-learn's extra trees",
    "balanced forest": "imbalanced-learn's forest",
}


def aggregate(path):
    """Write the mean AUC and the median fit time of each set and model over its folds."""
    found = pd.read_csv(path).drop_duplicates(["set", "fold", "model"])
    found = found[found["model"].isin([OURS, *PEERS])]
    groups = found.groupby(["set", "kind", "model"])
    table = groups.agg(folds=("fold", "nunique"), auc=("auc", "mean"), fit_seconds=("fit_seconds", "median"))
    table.round({"auc": 5, "fit_seconds": 3}).to_csv(RESULTS)


def draw_times(panel, table):
    """Draw the mean AUC of each model against the sum of its fit times, on the sets that all models had."""
    auc = table.pivot(index="set", columns="model", values="auc").dropna()
    seconds = table.pivot(index="set", columns="model", values="fit_seconds").loc[auc.index].sum()
    for name in [OURS, *PEERS]:
        color = "C0" if name == OURS else "0.4"
        panel.plot(seconds[name], auc[name].mean(), "o", color=color, markersize=9 if name == OURS else 6)
        style = {"textcoords": "offset points", "fontsize": 9, "color": color, "va": "center"}
        panel.annotate(NAMES.get(name, name), (seconds[name], auc[name].mean()), (8, 0), **style)
    panel.set_xscale("log")
    panel.set_xlim(2, 6000)
    panel.set(xlabel="seconds for one fit of every set, one thread", ylabel="mean test ROC AUC")
    panel.set_title(f"{len(auc)} data sets of at most 5,000 rows", fontsize=10)


def draw_wins(panel, table):
    """Draw on how many sets the forest ranks better than, as well as and worse than each peer."""
    auc = table.pivot(index="set", columns="model", values="auc")
    for place, name in enumerate(PEERS):
        gain = (auc[OURS] - auc[name]).dropna()
        left = 0
        for count, color in (((gain > 0).sum(), "C0"), ((gain == 0).sum(), "0.85"), ((gain < 0).sum(), "0.6")):
            panel.barh(place, count / len(gain), left=left, color=color)
            if count:
                panel.text(left + count / len(gain) / 2, place, count, ha="center", va="center", fontsize=9)
            left += count / len(gain)
    panel.set_yticks(range(len(PEERS)), [NAMES.get(name, name) for name in PEERS])
    panel.invert_yaxis()
    panel.set(xlim=(0, 1), xticks=[])
    panel.set_title("data sets: aucforest ranks better | equally | worse", fontsize=10)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="source", type=Path, help="CSV of benchmarks/ranking.py")
    options = parser.parse_args()
    if options.source:
        aggregate(options.source)
    table = pd.read_csv(RESULTS)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    draw_times(left, table)
    draw_wins(right, table)
    for panel in (left, right):
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=110)
    print(PICTURE)


if __name__ == "__main__":
    main()
