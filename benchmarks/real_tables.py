"""Which model ranks best on real tables, with categories and missing values? For evaluation only: choose nothing here.

    python benchmarks/real_tables.py [--rows N] [--folds 0 1 2 3 4] [--models NAME ...] [--sets NAME ...] [--trees N]
                                     [--csv FILE] [--reference NAME] [--report]

The tables of _real_tables.py, of a larger one a random sample of N rows (20,000) with the class frequencies of all.
Every model gets the categories in its own way: forests of scikit-learn as zeros and ones, CatBoost as strings, all
others as categories of pandas. Stratified folds, one thread, default parameters but where a name says otherwise.
Results that are already in the CSV are not measured again, so an interrupted run can be continued; rows of another N
belong in another CSV. `python -m aucforest warm-up` compiles beforehand, which otherwise counts in the first fit. Needs
the extra bench.
"""

import argparse
import warnings
from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
from _real_tables import real_tables
from ranking import MODELS, Makers, Task, make_models, make_parser, report, run
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder


def tasks(most_rows: int) -> Iterator[Task]:
    """Yield the tables, of larger ones a sample, and print their sizes."""
    for name, X, y in real_tables():
        n_rows, n_classes = len(y), int(y.max()) + 1
        if n_rows > most_rows:
            X, _, y, _ = train_test_split(X, y, train_size=most_rows, stratify=y, random_state=0)
        n_rarest, n_categorical = int(np.bincount(y).min()), len(X.select_dtypes("category").columns)
        print(f"{name:<18} {n_rows:>6,} rows, {len(y):>6,} used, {n_rarest:>5,} of the rarest of {n_classes}", end=" ")
        print(f"classes, {X.shape[1]:>2} features, {n_categorical:>2} of them categorical")
        kind = "multiclass" if n_classes > 2 else "rare" if n_rarest < 0.1 * len(y) else "binary"
        yield Task(name, kind, X, y)


def with_text(X: pd.DataFrame) -> pd.DataFrame:
    """Return strings for categories, and "missing" where they are missing."""
    categorical = X.select_dtypes("category").columns
    return X.astype(dict.fromkeys(categorical, str)).fillna(dict.fromkeys(categorical, "missing"))


def make_table_models(options: argparse.Namespace, one: Task, seed: int) -> Makers:
    """Return what makes each model for a table."""
    models = make_models(options.trees, seed, int(one.y.max()) + 1)
    categorical = list(one.X.select_dtypes("category").columns)
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    chosen = make_column_selector(dtype_include="category")
    columns = make_column_transformer((one_hot, chosen), remainder="passthrough")
    with_indicators = {
        name: lambda name=name: make_pipeline(columns, models[name]())
        for name in ("scikit-learn", "scikit-learn, leaves of 5")
    }
    encoded = with_indicators | {
        "XGBoost": partial(models["XGBoost"], enable_categorical=True),
        "CatBoost": lambda: make_pipeline(FunctionTransformer(with_text), models["CatBoost"](cat_features=categorical)),
    }
    return {name: encoded.get(name, models[name]) for name in MODELS}


def main() -> None:
    """Run what the command line asks for."""
    parser = make_parser(__doc__.splitlines()[0], list(MODELS), "aucforest", "real_tables.csv")
    parser.add_argument("--rows", type=int, default=20_000, help="at most so many of a table")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not options.report:
        run(options, tasks(options.rows), make_table_models)
    report(pd.read_csv(options.csv), options.reference)


if __name__ == "__main__":
    main()
