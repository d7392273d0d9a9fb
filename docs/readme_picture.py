"""Draw the picture of the README: the mean AUC of all models on the real tables against the time of their fits.

    python docs/readme_picture.py [--from real_tables.csv]

It is drawn from docs/real_tables.csv, the means by table and model of what benchmarks/real_tables.py measured. `--from`
writes that file first, from the results of a new run.
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

HERE = Path(__file__).parent
RESULTS, PICTURE = HERE / "real_tables.csv", HERE / "images" / "real_tables.png"
NAMES = {"scikit-learn": "scikit-learn's forest", "aucforest, stack": "aucforest's stack"}


def aggregate(path):
    """Write the mean metrics and the median fit time of each table and model over its folds."""
    results = pd.read_csv(path).drop_duplicates(["set", "fold", "model"])
    groups = results.groupby(["set", "kind", "model"])
    metrics = {name: (name, "mean") for name in ("auc", "average_precision", "log_loss", "brier")}
    table = groups.agg(folds=("fold", "nunique"), **metrics, fit_seconds=("fit_seconds", "median"))
    table.round(5).to_csv(RESULTS)


def draw(panel, table):
    """Draw the mean AUC of each model against the sum of its fit times, on the tables that all models had."""
    auc = table.pivot(index="set", columns="model", values="auc").dropna()
    seconds = table.pivot(index="set", columns="model", values="fit_seconds").loc[auc.index].sum()
    for name in auc:
        color = "C0" if name.startswith("aucforest") else "0.4"
        panel.plot(seconds[name], auc[name].mean(), "o", color=color, markersize=8)
        style = {"textcoords": "offset points", "fontsize": 10, "color": color, "va": "center"}
        panel.annotate(NAMES.get(name, name), (seconds[name], auc[name].mean()), (9, 0), **style)
    panel.set_xscale("log")
    panel.set_xlim(seconds.min() / 2, seconds.max() * 5)
    panel.set(xlabel="seconds for one fit of every table, one thread", ylabel="mean test ROC AUC")
    panel.set_title(f"{len(auc)} real tables that no default was chosen on", fontsize=11)
    panel.spines[["top", "right"]].set_visible(False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="source", type=Path, help="CSV of benchmarks/real_tables.py")
    options = parser.parse_args()
    if options.source:
        aggregate(options.source)
    figure, panel = plt.subplots(figsize=(8, 3.8), layout="constrained")
    draw(panel, pd.read_csv(RESULTS))
    figure.savefig(PICTURE, dpi=110)
    print(PICTURE)


if __name__ == "__main__":
    main()
