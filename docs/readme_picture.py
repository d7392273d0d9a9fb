"""Draw the picture of the README: mean AUC against fit time of all models, on data that no default was chosen on.

    python docs/readme_picture.py [--from real_tables.csv ranking.csv]

It is drawn from docs/real_tables.csv and docs/held_out.csv, the means by set and model of what
benchmarks/real_tables.py and benchmarks/ranking.py --held-out measured. `--from` writes both first, from new results.
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

HERE = Path(__file__).parent
PICTURE = HERE / "images" / "ranking.png"
RESULTS = {HERE / "real_tables.csv": "real tables", HERE / "held_out.csv": "KEEL sets, r to z, at most 5,000 rows"}
NAMES = {"scikit-learn": "scikit-learn's forest", "aucforest, stack": "aucforest's stack"}


def aggregate(source, target):
    """Write the mean metrics and the median fit time of each set and model over its folds."""
    groups = pd.read_csv(source).groupby(["set", "kind", "model"])
    metrics = {name: (name, "mean") for name in ("auc", "average_precision", "log_loss", "brier")}
    table = groups.agg(folds=("fold", "nunique"), **metrics, fit_seconds=("fit_seconds", "median"))
    table.round(6).to_csv(target)


def draw(panel, table, title):
    """Draw the mean AUC of each model against the sum of its fit times, on the sets that all models had."""
    auc = table.pivot(index="set", columns="model", values="auc").dropna()
    seconds = table.pivot(index="set", columns="model", values="fit_seconds").loc[auc.index].sum()
    for name in auc:
        ours, place = name.startswith("aucforest"), (seconds[name], auc[name].mean())
        color = "C0" if ours else "0.4"
        panel.plot(*place, "o", color=color, markersize=8 if ours else 6)
        where = {"xytext": (0, 10), "ha": "center"} if ours else {"xytext": (8, 0), "va": "center"}
        panel.annotate(NAMES.get(name, name), place, textcoords="offset points", fontsize=9, color=color, **where)
    panel.margins(y=0.12)
    panel.set_xscale("log")
    panel.set_xlim(seconds.min() / 1.5, seconds.max() * 8)
    panel.set(xlabel="seconds for one fit of every set, one thread", ylabel="mean test ROC AUC")
    panel.set_title(f"{len(auc)} {title}", fontsize=10)
    panel.spines[["top", "right"]].set_visible(False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="sources", type=Path, nargs=2, help="CSV of each of the two benchmarks")
    options = parser.parse_args()
    figure, panels = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    for source, panel, (target, title) in zip(options.sources or (None, None), panels, RESULTS.items()):
        if source:
            aggregate(source, target)
        draw(panel, pd.read_csv(target), title)
    figure.savefig(PICTURE, dpi=110)
    print(PICTURE)


if __name__ == "__main__":
    main()
