"""Which figures do the README and the page on settings have? Those of recorded runs of two benchmarks, on one machine.

    python benchmarks/front_page.py                  print their tables, and the machine and versions of the runs
    python benchmarks/front_page.py --draw           draw the picture of the README
    python benchmarks/front_page.py --record FOLDER  run both benchmarks and record them: an hour on two cores

The folder keeps every fold, so that an interrupted run continues. `benchmarks/recorded` has the means over folds by
data set and model, and what they ran on. All figures are of the data sets that every model was run on. Printing needs
the extra cli, recording the extra bench.
"""

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Iterable
from datetime import date
from importlib.metadata import version
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import psutil

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
PICTURE = HERE.parent / "docs" / "images" / "ranking.png"
COMMANDS = {"real_tables": ["real_tables.py", "--folds", "0", "1"], "keel": ["ranking.py", "--held-out"]}
TITLES = {"real_tables": "real tables", "keel": "small KEEL sets"}
REFERENCE = "aucforest"
SINGLE_CRITERIA = ["aucforest, auc", "aucforest, gini"]  # not in the README
INTEGER_CATEGORIES = [  # the real tables with integers that are categories, as fits of aucforest find
    "diamonds_cut",
    "lecture_rating",
    "movies_documentary",
    "pc_premium",
    "pharmacy_visits",
    "tuna_brand",
    "verb_aggression",
    "wife_insured",
]
NAMES = {
    "aucforest, stack": "aucforest's stack",
    "aucforest, auc": 'aucforest, `criterion="auc"`',
    "aucforest, gini": 'aucforest, `criterion="gini"`',
    "scikit-learn": "scikit-learn's forest",
    "scikit-learn, leaves of 5": "scikit-learn's forest, `min_samples_leaf=5`",
    "HistGradientBoosting": "scikit-learn's HistGradientBoosting",
}
LIBRARIES = "numba", "scikit-learn", "lightgbm", "xgboost", "catboost"


def record(folder: Path) -> None:
    """Run both benchmarks, one beside the other, and keep their means and the machine."""
    from ranking import MODELS

    folder.mkdir(parents=True, exist_ok=True)
    machine = describe_machine()
    subprocess.run([sys.executable, "-m", "aucforest", "warm-up"], check=True)
    runs = [
        subprocess.Popen(
            [sys.executable, str(HERE / script), *options, "--csv", str(folder / f"{name}.csv"), "--models", *MODELS],
            stdout=subprocess.DEVNULL,
        )
        for name, (script, *options) in COMMANDS.items()
    ]
    codes = [run.wait() for run in runs]
    if any(codes):
        raise SystemExit("a benchmark failed: see above")
    for name in COMMANDS:
        mean_over_folds(pd.read_csv(folder / f"{name}.csv")).round(6).to_csv(RECORDED / f"{name}.csv", index=False)
    (RECORDED / "machine.json").write_text(json.dumps(machine, indent=1) + "\n")


def describe_machine() -> dict[str, str]:
    """Return the date, the processor, its cores and memory, the revision and the versions of the libraries."""
    processors = Path("/proc/cpuinfo")
    lines = processors.read_text().splitlines() if processors.exists() else []
    models = [line.split(": ")[1] for line in lines if line.startswith("model name")]
    revision = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True)
    return {
        "date": f"{date.today():%-d %B %Y}",
        "revision": revision.stdout.strip(),
        "processor": models[0] if models else platform.processor(),
        "cores": str(psutil.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": platform.system(),
        "Python": platform.python_version(),
    } | {name: version(name) for name in LIBRARIES}


def read(name: str) -> pd.DataFrame:
    """Return the recorded means of the data sets that every model was run on."""
    table = pd.read_csv(RECORDED / f"{name}.csv")
    return table[table.groupby("set")["model"].transform("nunique") == table["model"].nunique()]


def mean_over_folds(results: pd.DataFrame) -> pd.DataFrame:
    """Return the means of metrics and the median fit times by data set and model."""
    metrics = {name: (name, "mean") for name in ("auc", "average_precision", "log_loss", "brier")}
    groups = results.groupby(["set", "kind", "model"])
    return groups.agg(folds=("fold", "nunique"), **metrics, fit_seconds=("fit_seconds", "median")).reset_index()


def summarize(table: pd.DataFrame, reference: str = REFERENCE) -> pd.DataFrame:
    """Return means over data sets by model, and paired differences from a reference with their standard errors."""
    wide = {metric: table.pivot(index="set", columns="model", values=metric) for metric in table.columns[4:]}
    auc, log_loss = wide["auc"], wide["log_loss"]
    gain, loss = (values.sub(values[reference], axis=0) for values in (auc, log_loss))
    kinds = table.groupby("set")["kind"].first()
    by_kind = {kind: auc[kinds == kind].mean() for kind in kinds.unique()}
    return pd.DataFrame(
        by_kind
        | {
            "auc": auc.mean(),
            "gain": gain.mean(),
            "gain_error": gain.std() / np.sqrt(len(gain)),
            "better": (gain > 0).sum(),
            "worse": (gain < 0).sum(),
            "rank": auc.rank(axis=1, ascending=False).mean(),
            "average_precision": wide["average_precision"].mean(),
            "brier": wide["brier"].mean(),
            "log_loss": log_loss.mean(),
            "log_loss_elsewhere": log_loss.drop(find_dominating(table)).mean(),
            "loss": loss.mean(),
            "loss_error": loss.std() / np.sqrt(len(loss)),
            "fit_seconds": wide["fit_seconds"].sum(),
        }
    ).sort_values("auc", ascending=False)


def find_dominating(table: pd.DataFrame) -> str:
    """Return the data set on which the models' log losses differ most."""
    log_loss = table.groupby("set")["log_loss"]
    return str((log_loss.max() - log_loss.min()).idxmax())


def print_header(*names: str) -> None:
    """Print the first two rows of a Markdown table."""
    print(format_row(names))
    print(format_row(["---"] * len(names)))


def format_row(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def format_name(model: object) -> str:
    """Return the name of a model in the tables."""
    return NAMES.get(str(model), str(model))


def format_difference(model: object, mean: float, error: float, digits: int) -> str:
    """Return a mean difference and its standard error, but nothing for the reference itself."""
    return "" if model == REFERENCE else f"{mean:+.{digits}f} ± {error:.{digits}f}"


def format_seconds(seconds: float) -> str:
    """Return seconds with two digits or more."""
    return f"{seconds:.0f}" if seconds > 9.95 else f"{seconds:.1f}"


def print_short_table(name: str) -> None:
    """Print the table of the README."""
    table = read(name)
    print(f"\n{table['set'].nunique()} {TITLES[name]}\n")
    losses = "log loss", f"log loss without `{find_dominating(table)}`"
    print_header("model", "ROC AUC", "difference from aucforest", "ROC AUC, rare class", *losses, "time to fit")
    for model, row in summarize(table).drop(SINGLE_CRITERIA).iterrows():
        gain = format_difference(model, row["gain"], row["gain_error"], 3)
        auc, rare = f"{row['auc']:.3f}", f"{row['rare']:.3f}"
        losses = f"{row['log_loss']:.3f}", f"{row['log_loss_elsewhere']:.3f}"
        seconds = f"{format_seconds(row['fit_seconds'])} s"
        print(format_row([format_name(model), auc, gain, rare, *losses, seconds]))


def print_long_table(name: str) -> None:
    """Print the table of the page on settings."""
    table = read(name)
    kinds = [kind for kind in ("rare", "binary", "multiclass") if kind in set(table["kind"])]
    counts = table.groupby("kind")["set"].nunique()
    print(f"\n{table['set'].nunique()} {TITLES[name]}, {table['folds'].max()} folds\n")
    ranking = [*(f"{kind} ({counts[kind]})" for kind in kinds), f"all ({counts.sum()})"]
    others = "rank", "average precision", "Brier", "log loss", "log loss difference", "fit, s"
    print_header("model", *ranking, "AUC difference", "better, worse", *others)
    for model, row in summarize(table).iterrows():
        ranking = [f"{row[kind]:.4f}" for kind in [*kinds, "auc"]]
        gain = format_difference(model, row["gain"], row["gain_error"], 4)
        sets = "" if model == REFERENCE else f"{row['better']:.0f}, {row['worse']:.0f}"
        loss = format_difference(model, row["loss"], row["loss_error"], 4)
        others = f"{row['rank']:.2f}", f"{row['average_precision']:.3f}", f"{row['brier']:.3f}"
        losses = f"{row['log_loss']:.4f}", loss, format_seconds(row["fit_seconds"])
        print(format_row([format_name(model), *ranking, gain, sets, *others, *losses]))


def describe_other_tables() -> str:
    """Return a sentence on the real tables without integers that are categories."""
    table = read("real_tables")
    others = table[~table["set"].isin(INTEGER_CATEGORIES)]
    summaries = {model: summarize(others, model).loc["CatBoost"] for model in (REFERENCE, f"{REFERENCE}, stack")}
    forest, stack = (f"{-row['gain']:.3f} ± {row['gain_error']:.3f}" for row in summaries.values())
    return (
        f"On the other {others['set'].nunique()} tables the ROC AUC of the forest is higher than that of CatBoost by "
        f"{forest}, and that of the stack by {stack}."
    )


def describe_runs() -> str:
    """Return a sentence on the machine and the versions."""
    machine = json.loads((RECORDED / "machine.json").read_text())
    versions = ", ".join(f"{name} {machine[name]}" for name in LIBRARIES)
    return (
        f"Measured on {machine['date']} (the package of revision {machine['revision']}) on {machine['processor']}, "
        f"{machine['cores']} cores, {machine['memory']}, {machine['system']}, "
        f"with Python {machine['Python']}, {versions}."
    )


def draw() -> None:
    """Draw the differences in AUC from the reference with their standard errors; fit times are written beside them."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 3.2), sharey=True, layout="constrained")
    models = summarize(read("real_tables")).drop(SINGLE_CRITERIA).index[::-1]
    for name, panel in zip(COMMANDS, panels):
        table = read(name)
        means = summarize(table).loc[models]
        for height, (model, row) in enumerate(means.iterrows()):
            color = "C0" if str(model).startswith(REFERENCE) else "0.4"
            panel.errorbar(row["gain"], height, xerr=row["gain_error"], fmt="o", color=color, elinewidth=1, capsize=2)
            seconds = f"{format_seconds(row['fit_seconds'])} s"
            panel.text(1, height, seconds, transform=panel.get_yaxis_transform(), va="center", ha="right", fontsize=9)
        panel.axvline(0, color="C0", linewidth=0.5)
        low, high = panel.get_xlim()
        panel.set_xlim(low, high + 0.2 * (high - low))  # room for the fit times
        panel.set_yticks(range(len(models)), [format_name(model).replace("`", "") for model in models])
        panel.set_title(f"{table['set'].nunique()} {TITLES[name]}", fontsize=10)
        panel.text(1, len(models) - 0.4, "time to fit", transform=panel.get_yaxis_transform(), ha="right", fontsize=9)
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params(axis="y", length=0)
    figure.supxlabel("difference in test ROC AUC from aucforest, mean and standard error", fontsize=10)
    figure.savefig(PICTURE, dpi=110, metadata={"Software": None})
    print(PICTURE)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--record", type=Path, metavar="FOLDER", help="run both benchmarks first; keeps every fold here"
    )
    parser.add_argument("--draw", action="store_true", help="draw the picture of the README")
    options = parser.parse_args()
    if options.record:
        record(options.record)
    print(describe_runs())
    print_short_table("real_tables")
    print(f"\n{describe_other_tables()}")
    for name in COMMANDS:
        print_long_table(name)
    if options.draw:
        draw()


if __name__ == "__main__":
    main()
