"""In every public function, twice as many columns take at most about twice the work.

Work is the number of calls of Python functions and extensions, plus the number of names and types that narwhals lists.
Names of pandas columns are compared by a Python function, so that a search in a list of names counts, too.
"""

import cProfile
from functools import cached_property

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

from aucforest import AUCStackingClassifier, AUCTreeClassifier, load
from aucforest.distributed import fit_out_of_core, predict_out_of_core
from aucforest.fitting import on_disk
from aucforest.inspection import column_notes, compare_criteria, explain, forest_summary, oob_permutation_importance
from aucforest.monitoring import CBPE, Chunks
from aucforest.report import report
from aucforest.tables import csv
from tests.cli.data import succeed
from tests.estimators.data import small_forest

N_COLUMNS, N_ROWS, N_TEXTS = 500, 60, 3
RANDOM = np.random.default_rng(0)
Y = RANDOM.permutation(N_ROWS) % 2


class Name(str):
    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        return str.__eq__(self, other)


Name.__qualname__ = "str"  # scikit-learn recognizes names of columns by this


def make_columns(n_columns):
    columns = {f"x{j}": values for j, values in enumerate(RANDOM.normal(size=(n_columns - N_TEXTS - 1, N_ROWS)))}
    columns |= {f"t{j}": RANDOM.choice(["a", "b", "c"], N_ROWS) for j in range(N_TEXTS)}
    return columns | {"d": np.datetime64("2024-01-01", "us") + RANDOM.integers(0, 10**9, N_ROWS)}


FORMS = {
    "pandas": lambda columns: pd.DataFrame({Name(name): values for name, values in columns.items()}),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "numpy": lambda columns: np.stack([values for name, values in columns.items() if name[0] == "x"], axis=1),
}


class Table:
    """A table in some form, a forest of it, and a folder with both in files."""

    def __init__(self, form, n_columns, folder):
        self.columns, self.folder = make_columns(n_columns), folder
        self.X, self.csv, self.model = FORMS[form](self.columns), folder / f"{n_columns}.csv", folder / f"m{n_columns}"
        pyarrow.csv.write_csv(pa.table(self.columns | {"y": Y}), self.csv)

    @cached_property
    def forest(self):
        forest = new_forest().fit(self.X, Y)
        forest.save(self.model)
        return forest


def new_forest(**params):
    return small_forest(3, oob_score=True, n_jobs=1, **params)


def half_categorical(table):
    """Fit a forest with half of the columns as categorical, but not the last column, which has dates."""
    n_columns = table.X.shape[1]
    new_forest(categorical_features=list(range(n_columns // 2, n_columns - 1))).fit(table.X, Y)


def monitor(table):
    """Estimate performance with features, without dates, which are refused."""
    X, scores = pd.DataFrame(table.columns).drop(columns="d"), np.linspace(0.0, 1.0, N_ROWS)
    cbpe = CBPE(random_state=0).fit(y_true=Y, y_score=scores, X=X, chunks=Chunks.by_number(3))
    cbpe.estimate(scores, X=X, chunks=Chunks.by_number(1))


def out_of_core(table):
    forest = fit_out_of_core(new_forest(), table.csv, "y")
    list(predict_out_of_core(forest, table.csv, keep=list(table.columns)))


def page(table):
    """Make a report with training rows, whose importance is out of bag."""
    options = {"X_train": table.X, "y_train": Y, "n_repeats": 1, "n_bootstrap": 2, "n_jobs": 1}
    report(table.forest, table.X, Y, **options)


def command(*arguments):
    """Return the call of a command, with the files of a table in place of T, M and OUT."""

    def call(table):
        files, _ = {"T": table.csv, "M": table.model, "OUT": table.folder / "out.csv"}, table.forest
        succeed(*(files.get(argument, argument) for argument in arguments))

    return call


FUNCTIONS = {
    "fit": lambda table: new_forest().fit(table.X, Y), "fit of categories": half_categorical,
    "predict": lambda table: table.forest.predict_proba(table.X[:5]),
    "explain": lambda table: explain(table.forest, table.X[:5]).top(3),
    "encode": lambda table: table.forest.encode(table.X),
    "notes": lambda table: column_notes(table.X, Y, model=table.forest),
    "importance": lambda table: oob_permutation_importance(table.forest, table.X, Y, n_repeats=1, n_jobs=1),
    "report": page, "summary": lambda table: (repr(forest_summary(table.forest)), table.forest.split_features_),
    "tree": lambda table: AUCTreeClassifier(random_state=0).fit(table.X, Y).predict(table.X),
    "stack": lambda table: AUCStackingClassifier(new_forest()).fit(table.X, Y).predict(table.X),
    "compare": lambda table: compare_criteria(table.X, Y, criteria=["gini", "auc"], cv=2, n_estimators=2),
    "monitor": monitor,
    "exports": lambda table: (table.forest.to_sklearn(), table.forest.to_onnx(table.folder / "onnx")),
    "files": lambda table: (table.forest, load(table.model).save(table.model)), "out of core": out_of_core,
    "fit command": command("fit", "T", "--target", "y", "--out", "OUT", "--trees", 3, "--jobs", 1),
    "predict command": command("predict", "M", "T", "--reasons", 2, "--out", "OUT"),
    "evaluate command": command("evaluate", "M", "T", "--target", "y"), "inspect command": command("inspect", "M"),
}  # fmt: skip


def work(function, table, monkeypatch):
    """Return the number of function calls in this thread, plus the number of names and types that narwhals lists."""
    n_listed = 0

    def counted(of_narwhals):
        def count(frame):
            nonlocal n_listed
            values = of_narwhals.fget(frame)
            n_listed += len(values)
            return values

        return property(count)

    with monkeypatch.context() as patch, cProfile.Profile() as profile:
        for name in ("columns", "schema"):
            patch.setattr(nw.DataFrame, name, counted(getattr(nw.DataFrame, name)))
        function(table)
    return sum(entry.callcount for entry in profile.getstats()) + n_listed


QUICK = {("pandas", "predict"), ("pyarrow", "fit of categories")}
CASES = [
    pytest.param(form, name, marks=[] if (form, name) in QUICK else pytest.mark.slow)
    for form in FORMS
    for name in FUNCTIONS
    if form == "pyarrow" or name in ("fit", "predict")
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("form", "name"), CASES)
def test_work_grows_with_the_columns(form, name, tmp_path, monkeypatch):
    monkeypatch.setattr(on_disk, "_in_order", lambda function, arguments, _: (function(*each) for each in arguments))
    monkeypatch.setattr(csv, "_MOST_BYTES", 2**23)  # so that the larger file is read in one batch, too
    few, many = (Table(form, n_columns, tmp_path) for n_columns in (N_COLUMNS, 2 * N_COLUMNS))
    function = FUNCTIONS[name]
    function(few), function(many)  # fits, and compiles
    assert work(function, many, monkeypatch) < 2.3 * work(function, few, monkeypatch)
