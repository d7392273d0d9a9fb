"""The demo: which flights are cancelled? A forest against its peers, split criteria against Gini, and a report.

    make demo

Everything it writes goes to out/.
"""

import json
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import pandas as pd
from lightgbm import LGBMClassifier
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from aucforest import AUCForestClassifier, AUCStackingClassifier
from aucforest.datasets import load_flights
from aucforest.inspection import compare_criteria
from aucforest.report import report

HERE = Path(__file__).parent
OUT = HERE / "out"
PRECISION = 0.2
N_TREES = 300
CRITERIA = ["auto", "auc", "entropy", "gini"]
METRICS = {"roc_auc": "ROC AUC", "average_precision": "average precision", "g_mean": "G-mean"}

plt.switch_backend("agg")
console = Console()


def make_models(X):
    """Return the models. Only the forests of scikit-learn need the categories as zeros and ones."""
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    categorical = list(X.select_dtypes("category"))
    columns = make_column_transformer((one_hot, categorical), remainder="passthrough")
    peer = RandomForestClassifier(N_TREES, n_jobs=-1, random_state=0)
    return {
        "aucforest": AUCForestClassifier(n_jobs=-1, random_state=0),
        "aucforest's stack": AUCStackingClassifier(n_jobs=-1, random_state=0),
        "scikit-learn's forest": make_pipeline(columns, peer),
        "scikit-learn's forest, leaves of 5": make_pipeline(columns, clone(peer).set_params(min_samples_leaf=5)),
        "scikit-learn's HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
        "LightGBM": LGBMClassifier(n_jobs=-1, random_state=0, verbose=-1),
    }


def recall_at(precision, y, score):
    """Return the greatest recall of all thresholds whose precision is at least this."""
    precisions, recalls, _ = precision_recall_curve(y, score)
    return recalls[precisions >= precision].max()


def compare_models(X, y, test):
    """Fit all models on the same rows, print how well each ranks the test rows, and return the rows of the table."""
    rows = []
    with console.status("") as status:
        for name, model in make_models(X).items():
            status.update(f"fitting {name}")
            start = perf_counter()
            model.fit(X[~test], y[~test])
            seconds = perf_counter() - start
            score = model.predict_proba(X[test])[:, 1]
            scores = roc_auc_score(y[test], score), average_precision_score(y[test], score)
            rows.append((name, *map(float, scores), float(recall_at(PRECISION, y[test], score)), seconds))
    table = Table("model", "ROC AUC", "average precision", f"recall at precision {PRECISION}", "fit, seconds")
    for name, *values in rows:
        table.add_row(name, *(f"{value:.3f}" for value in values[:3]), f"{values[3]:.1f}")
    console.print(table)
    return rows


def compare_with_gini(X, y, weeks):
    """Cross-validate forests of all criteria by weeks, print and draw their differences from Gini, and return them."""
    comparison = compare_criteria(
        X,
        y,
        criteria=CRITERIA,
        cv=list(StratifiedGroupKFold(5, shuffle=True, random_state=0).split(X, y, weeks)),
        metrics=list(METRICS),
        n_estimators=100,
        threshold="prevalence",
        n_jobs=-1,
        random_state=0,
    )
    rows = [row for row in comparison.summary() if row.criterion != "gini"]
    caption = "G-mean of labels by the prevalence threshold"
    table = Table("metric", "criterion", "mean", "less Gini's", "95 % interval", caption=caption)
    for row in rows:
        ends = f"{row.difference_low:+.4f} to {row.difference_high:+.4f}"
        table.add_row(METRICS[row.metric], row.criterion, f"{row.mean:.4f}", f"{row.difference:+.4f}", ends)
    console.print(table)
    comparison.plot().savefig(OUT / "criteria.png", dpi=110)
    return [row._asdict() for row in rows]


def write_report(X, y, test):
    """Fit a forest with a tuned threshold, save it, and write a report on the test rows."""
    forest = AUCForestClassifier(threshold="gmean", n_jobs=-1, random_state=0).fit(X[~test], y[~test])
    forest.save(OUT / "flights.aucforest")
    page = report(
        forest,
        X[test],
        y[test],
        X_train=X[~test],
        y_train=y[~test],
        title="Cancelled flights",
        n_jobs=-1,
        random_state=0,
    )
    page.save(OUT / "report.html")


def main():
    """Run the demo."""
    start = perf_counter()
    OUT.mkdir(exist_ok=True)
    flights = load_flights(as_frame=True)
    X, y, test = flights.data, flights.target, (flights.day - 1) // 7 % 3 == 2
    console.print(
        f"[bold]Which flights are cancelled?[/] {len(y):,} flights from New York in 2013, {y.mean():.1%} cancelled. "
        f"Every third week is held out: {test.sum():,} flights, {y[test].sum()} cancelled."
    )
    with console.status("compiling, once for an installation"):
        AUCForestClassifier(n_jobs=-1).fit(X[~test], y[~test])
    console.rule("against other models")
    models = compare_models(X, y, test)
    console.rule("split criteria: 100 trees, five folds of weeks")
    criteria = compare_with_gini(X, y, flights.day // 7)
    columns = ["model", "roc_auc", "average_precision", "recall", "fit_seconds"]
    results = {"models": pd.DataFrame(models, columns=columns).to_dict("records"), "criteria": criteria}
    (OUT / "demo.json").write_text(json.dumps(results, indent=1))
    console.rule("report")
    with console.status("writing the report"):
        write_report(X, y, test)
    for name in ("report.html", "criteria.png", "demo.json", "flights.aucforest"):
        console.print(f"out/{name}")
    console.print(f"{perf_counter() - start:.0f} seconds")


if __name__ == "__main__":
    main()
