"""Reports: one HTML file that tells a reader what a model, or a comparison of criteria, is worth."""

import html
import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import _num_samples

from aucforest._files import write_whole
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.out_of_bag import training_rows
from aucforest.fitting.out_of_bag import TrainingRows
from aucforest.inspection.comparison import CriteriaComparison
from aucforest.inspection.importance import oob_permutation_importance
from aucforest.inspection.models import check_count
from aucforest.metrics.thresholds import check_cost
from aucforest.metrics.validation import check_weights
from aucforest.report import sections
from aucforest.report.explorer import costs_of
from aucforest.report.importances import column_names, held_out_importance
from aucforest.report.metrics import resample
from aucforest.report.page import Section, percent, render
from aucforest.report.plots import drawing
from aucforest.report.rows import ScoredRows, number_labels, score_rows


@dataclass(frozen=True, repr=False)
class Report:
    """A page that `report` wrote; in a notebook it shows itself.

    Attributes
    ----------
    title : str
    html : str
        The whole page.
    """

    title: str
    html: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, whole or not at all; OSError where the folder cannot be written."""
        write_whole(path, self.html.encode())

    def __repr__(self) -> str:
        return f"<Report {self.title!r}, {len(self.html.encode()) / 1000:,.0f} kB>"

    def _repr_html_(self) -> str:
        page = html.escape(self.html)
        return f'<iframe srcdoc="{page}" title="{html.escape(self.title)}" width="100%" height="800"></iframe>'


def report(
    model_or_comparison: Any,
    X_test: Any = None,
    y_test: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    X_train: Any = None,
    y_train: ArrayLike | None = None,
    sample_weight_train: ArrayLike | None = None,
    title: str | None = None,
    cost: ArrayLike | None = None,
    n_bootstrap: int = 500,
    n_repeats: int = 5,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Report:
    """Write a report on a fitted classifier, or on a comparison of criteria, as one self-contained HTML page.

    Of a model: its scores beside those of a model without skill, ROC and precision-recall curves, calibration, an
    explorer of thresholds and costs (two classes), permutation importances and the data. A forest also tells about
    its trees and, given its training rows, its out-of-bag AUC by their number.

    Parameters
    ----------
    model_or_comparison : classifier or CriteriaComparison
        Any fitted scikit-learn classifier; without `predict_proba` its `decision_function` is evaluated, and there is
        no calibration. Or what `compare_criteria` returned, which needs nothing else.
    X_test : array-like or frame of shape (n_samples, n_features)
        Rows that the model was not trained on.
    y_test : array-like of shape (n_samples,)
        Their labels, of at least two classes.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of these rows, not negative. With weights the ROC curve has no band.
    X_train, y_train : array-like, default=None
        The training rows and labels. A forest with ``bootstrap=True`` then takes importances from its out-of-bag rows
        instead of `X_test`.
    sample_weight_train : array-like, default=None
        The weights of the training.
    title : str, default=None
        Headline; None names the model.
    cost : array-like of shape (n_classes, n_classes), default=None
        ``cost[i][j]`` is what it costs to predict class j where i is true. Of two classes the explorer starts with what
        errors cost more than right predictions; None takes the forest's `threshold`, or else 1 for each error.
    n_bootstrap : int, default=500
        How often rows are drawn again, from each class as many as it has, for percentile intervals; that of the ROC
        AUC of two classes is a score interval with DeLong's variance.
    n_repeats : int, default=5
        How often each column is permuted; 0 leaves importances out.
    n_jobs : int or None, default=None
        Threads of out-of-bag importances.
    random_state : int, RandomState instance or None, default=None
        Draws rows and permutations; equal seeds give equal pages.

    Returns
    -------
    Report
        With ``html`` and ``save(path)``.

    Raises
    ------
    ValueError
        For rows that the model cannot read, lengths that differ, labels that the model does not know, a single class,
        training rows that are not those of the forest, or an option out of its range.
    TypeError
        For what is neither a classifier nor a comparison.
    sklearn.exceptions.NotFittedError
        For a model that is not fitted.
    ImportError
        Without jinja2 or matplotlib (extra ``report``).

    Examples
    --------
    >>> from sklearn.model_selection import train_test_split
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.report import report
    >>> X, rings = load_abalone(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(X, rings >= 12, random_state=0)
    >>> forest = AUCForestClassifier(20, random_state=0).fit(X, y)
    >>> page = report(forest, X_test, y_test, title="Old abalone", n_bootstrap=50, n_repeats=1, random_state=0)
    >>> "Old abalone" in page.html, page.html.count("<svg")
    (True, 7)
    """
    if isinstance(model_or_comparison, CriteriaComparison):
        if any(given is not None for given in (X_test, y_test, sample_weight, X_train, y_train)):
            raise ValueError("the report of a comparison takes no rows: X_test, y_test and the like must be None")
        title = "Comparison of split criteria" if title is None else title
        with drawing():
            parts = sections.comparison_sections(model_or_comparison)
        return Report(title, render(title, sections.comparison_facts(model_or_comparison), parts))
    check_count("n_bootstrap", n_bootstrap, 2)
    check_count("n_repeats", n_repeats, 0)
    rows = score_rows(model_or_comparison, X_test, y_test, sample_weight)
    matrix = costs_of(rows.model) if cost is None else check_cost(cost, len(rows.classes))
    training = _read_training(rows.model, X_train, y_train, sample_weight_train)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    resamples = resample(rows, n_bootstrap, seed)
    with drawing():
        parts = [sections.summary_section(rows, resamples), sections.ranking_section(rows, resamples)]
        if rows.is_probability:
            parts.append(sections.calibration_section(rows))
        if len(rows.classes) == 2:
            parts.append(sections.threshold_section(rows, matrix))
        if n_repeats > 0:
            parts += _importances(rows, training, n_repeats, n_jobs, seed)
        parts.append(sections.model_section(rows.model, training and training.rows))
        parts.append(sections.data_section(rows, training and (training.labels, training.sample_weight)))
    if title is None:
        of = " against ".join(rows.classes[::-1]) if len(rows.classes) == 2 else f"{len(rows.classes)} classes"
        title = f"{type(rows.model).__name__}: {of}"
    return Report(title, render(title, _facts(rows), parts))


class _Training(NamedTuple):
    """The training data, and of a forest that draws rows also its draws."""

    X: Any
    y: NDArray[Any]
    labels: NDArray[np.int64]
    sample_weight: NDArray[np.float64] | None
    rows: TrainingRows | None


def _read_training(model: Any, X: Any, y: ArrayLike | None, sample_weight: ArrayLike | None) -> _Training | None:
    """Return the training data where they are given."""
    if X is None and y is None and sample_weight is None:
        return None
    if X is None or y is None:
        raise ValueError("the training data are X_train and y_train: give both or none")
    given = column_or_1d(y)
    if _num_samples(X) != len(given):
        raise ValueError(f"X_train has {_num_samples(X)} rows, but y_train has {len(given)}")
    labels = number_labels(given, model.classes_, "y_train")
    weights = check_weights(sample_weight, len(given), of="y_train")
    draws = isinstance(model, AUCForestClassifier) and model.bootstrap
    return _Training(X, given, labels, weights, training_rows(model, X, given, weights) if draws else None)


def _importances(
    rows: ScoredRows, training: _Training | None, n_repeats: int, n_jobs: int | None, seed: int
) -> list[Section]:
    """Return what the columns are worth, out of bag where that can be; nothing for what has no columns."""
    if training is not None and training.rows is not None:
        options: dict[str, Any] = {"n_repeats": n_repeats, "sample_weight": training.sample_weight, "n_jobs": n_jobs}
        found = oob_permutation_importance(rows.model, training.X, training.y, random_state=seed, **options)
        return [sections.importance_section(found, "training rows, each predicted by the trees that did not draw it")]
    if column_names(rows.X) is None:
        return []
    return [sections.importance_section(held_out_importance(rows, n_repeats, seed), "of the rows of this report")]


def _facts(rows: ScoredRows) -> list[tuple[str, str]]:
    """Return what stands below the title."""
    facts = [("Model", type(rows.model).__name__), ("Rows judged", f"{rows.labels.size:,}")]
    if len(rows.classes) == 2:
        positive_rows = f"{np.count_nonzero(rows.labels):,} ({percent(float(rows.frequencies[1]))})"
        return [*facts, ("Positive class", rows.classes[1]), ("Positive rows", positive_rows)]
    return [*facts, ("Classes", str(len(rows.classes)))]
