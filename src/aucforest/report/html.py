"""Reports: one HTML file on a model, on several models, or on a comparison of split criteria."""

import html
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from aucforest._files import write_whole
from aucforest._optional import import_optional
from aucforest._progress import progress_bar
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.out_of_bag import training_rows
from aucforest.inspection import PermutationImportance
from aucforest.inspection.comparison import CriteriaComparison
from aucforest.inspection.importance import oob_permutation_importance
from aucforest.inspection.models import check_count, forest_of
from aucforest.metrics.thresholds import check_cost
from aucforest.report import model, model_comparison, performance
from aucforest.report.data import Training, check_overlap, data_section, pair_columns, read_training
from aucforest.report.drift import drift_sections
from aucforest.report.importance import held_out_importance
from aucforest.report.metrics import cost_matrix, resample
from aucforest.report.page import Section, percent, render
from aucforest.report.performance import default_groups, read_grouping_columns
from aucforest.report.plots import drawing
from aucforest.report.rows import ScoredRows, score_rows


@dataclass(frozen=True, repr=False)
class Report:
    """A page that `report` returns. Notebooks display it.

    Attributes
    ----------
    title : str
    html : str
        The whole page.
    """

    title: str
    html: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file; if this raises OSError, an existing file is unchanged."""
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
    facts: Mapping[str, str] | None = None,
    intended_use: str | None = None,
    by: Any = None,
    cost: ArrayLike | None = None,
    n_bootstrap: int = 500,
    n_repeats: int = 5,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Report:
    """Write a report on fitted classifiers, or on a comparison of split criteria, as one self-contained HTML page.

    The page on one model has a summary in plain words, metrics compared with a model without skill, curves,
    calibration, permutation importances, partial dependence, performance in subgroups, and the data. For two classes,
    it also has alerts, an explorer of thresholds and costs, and the reasons for the highest scores of a tree, forest or
    stack. It describes the trees of a forest, and compares a stack with its forest.

    The page on several models says which have a higher or lower ROC AUC than the first. It has their metrics, paired
    intervals of the differences from the first, p-values adjusted for the number of models, curves, and the data. Given
    training rows, both pages say whether columns and classes have drifted.

    Parameters
    ----------
    model_or_comparison : classifier, sequence or mapping of classifiers, or CriteriaComparison
        A fitted scikit-learn classifier; or two to ten with the same classes, as ``{"champion": a, "challenger": b}``
        or as a list, whose models are named by their types; or the result of `compare_criteria`, which needs no rows.
        Without `predict_proba`, `decision_function` is evaluated and there is no calibration. Each of several models
        gets the columns of a frame that it was fitted to.
    X_test : array-like or frame of shape (n_samples, n_features)
        Rows that the model was not trained on.
    y_test : array-like of shape (n_samples,)
        Labels of `X_test`, of at least two classes. The name of a Series of numbers or booleans is part of the
        names of classes, such as "cancelled = 1".
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights of the test rows. With weights the ROC curve has no confidence band.
    X_train, y_train : array-like, default=None
        The training rows and labels. With them, the page warns if test rows are training rows, and has a section on
        drift. Importances of a forest with ``bootstrap=True`` then use out-of-bag rows instead of `X_test`.
    sample_weight_train : array-like, default=None
        Weights of the training rows.
    title : str, default=None
        Title of the page. None uses the names of the model and the classes.
    facts : mapping of str to str, default=None
        Entries below the title, such as ``{"Target": "fraud", "Data": "payments of May"}``. They replace entries of the
        same name, such as "Date", which is today or given by the variable `SOURCE_DATE_EPOCH`.
    intended_use : str, default=None
        The decisions and the rows that the model is meant for.
    by : str, sequence of str, or frame or mapping of arrays, default=None
        Names of columns of `X_test`, or arrays by name, which define subgroups and need not be features of the model.
        None uses the two most important categorical columns with at most ten categories. Not for several models.
    cost : array-like of shape (n_classes, n_classes), default=None
        ``cost[i][j]`` is the cost of predicting class j if class i is true. For two classes the explorer starts with
        the costs of errors minus the costs of correct predictions. None uses the costs of the forest's `threshold`;
        without them, the explorer shows costs only after its reader enters them. Not for several models.
    n_bootstrap : int, default=500
        Number of stratified bootstrap samples for percentile intervals. For two classes, the interval of
        the ROC AUC is computed with DeLong's variance instead.
    n_repeats : int, default=5
        Number of permutations of each column; 0 omits importances and partial dependence.
    n_jobs : int or None, default=None
        Number of threads for out-of-bag importances and for the reasons for the highest scores.
    random_state : int, RandomState instance or None, default=None
        Controls bootstrap samples, permutations and the forest that measures drift. Equal seeds and dates give equal
        pages.
    verbose : int, default=0
        1 shows progress.

    Returns
    -------
    Report
        With ``html`` and ``save(path)``.

    Raises
    ------
    ValueError
        If a model cannot read the rows, lengths differ, a label or a column in `by` is unknown, there is one class,
        `X_train` is not the training data of the forest, classes of models differ, or an option is out of range.
    TypeError
        If the first argument is neither a classifier nor a comparison.
    sklearn.exceptions.NotFittedError
        If a model is not fitted.
    ImportError
        If jinja2 or matplotlib (extra ``report``) is not installed.

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
    (True, 14)
    """
    for module in ("jinja2", "matplotlib"):  # raises ImportError before slow computations
        import_optional(module, purpose="a report", extra="report")
    given_facts = dict(facts or {})
    if isinstance(model_or_comparison, CriteriaComparison):
        of_models = X_test, y_test, sample_weight, X_train, y_train, sample_weight_train, intended_use, by, cost
        if any(given is not None for given in of_models):
            names = "X_test, y_test, sample_weight, X_train, y_train, sample_weight_train, intended_use, by and cost"
            raise ValueError(f"the report of a comparison takes no rows or models: {names} must be None")
        title = "Comparison of split criteria" if title is None else title
        with drawing():
            shown, content = model_comparison.criteria_content(model_or_comparison)
        return Report(title, render(title, shown | given_facts, content))
    check_count("n_bootstrap", n_bootstrap, 2)
    if (target := getattr(y_test, "name", None)) not in (None, ""):
        given_facts = {"Target": str(target)} | given_facts
    if isinstance(model_or_comparison, Mapping | list | tuple):
        if by is not None or cost is not None:
            raise ValueError("the report on several models takes no by and no cost: they are for a report on one")
        models = model_comparison.named_models(model_or_comparison)
        scored = {name: score_rows(model, X_test, y_test, sample_weight, name) for name, model in models.items()}
        first = next(iter(scored.values())).model
        training = read_training(first, X_train, y_train, sample_weight_train)
        options = {"n_bootstrap": n_bootstrap, "random_state": random_state}
        return report_on_models(scored, training, title=title, facts=given_facts, intended_use=intended_use, **options)
    check_count("n_repeats", n_repeats, 0)
    rows = score_rows(model_or_comparison, X_test, y_test, sample_weight)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    training = read_training(rows.model, X_train, y_train, sample_weight_train)
    forest = forest_of(rows.model)
    if training is not None and forest is not None and forest.bootstrap:
        # Raises ValueError for other rows than those of the fit, before slow computations.
        training_rows(forest, training.X, training.y, training.sample_weight)
    groups = read_grouping_columns(by, rows, sample_weight)
    costs = cost_matrix(rows.model) if cost is None else check_cost(cost, len(rows.classes))
    is_binary = len(rows.classes) == 2
    pairs = pair_columns(rows, training)
    overlap, warning = check_overlap(rows, training, pairs)
    drift = drift_sections(rows, training, pairs, seed)
    del pairs  # they may be copies of large tables

    def sections() -> Iterator[Section]:
        resamples = resample(rows, n_bootstrap, seed)
        yield performance.summary_section(rows, resamples)
        importance, source = _importance(rows, training, n_repeats, n_jobs, seed)
        shown_groups = groups or default_groups(rows, importance)
        yield performance.use_section(rows, intended_use, overlap, bool(shown_groups))
        yield performance.ranking_section(rows, resamples)
        if is_binary:
            yield performance.alerts_section(rows)
        if rows.is_probability:
            yield performance.calibration_section(rows)
        if is_binary:
            yield performance.threshold_section(rows, costs)
        if shown_groups:
            yield performance.subgroups_section(rows, shown_groups)
        if importance is not None:
            yield model.importance_section(importance, source)
            yield from model.dependence_sections(rows, importance, seed)
        yield from model.reasons_sections(rows, n_jobs)
        yield from model.members_sections(rows, n_bootstrap, seed)
        yield model.model_section(rows.model, training)
        yield from drift
        yield data_section(rows, training)

    with drawing():
        parts = list(progress_bar(sections(), desc="report", unit=" sections", verbose=verbose))
    title, shown = _heading(rows, title, {"Model": type(rows.model).__name__}, given_facts)
    return Report(title, render(title, shown, parts, [warning] if warning else []))


def _importance(
    rows: ScoredRows, training: Training | None, n_repeats: int, n_jobs: int | None, seed: int
) -> tuple[PermutationImportance | None, str]:
    """Return permutation importances, or None without columns or repeats, and a phrase for the rows that they use."""
    if n_repeats == 0:
        return None, ""
    if training is None or not isinstance(rows.model, AUCForestClassifier) or not rows.model.bootstrap:
        return held_out_importance(rows, n_repeats, seed), "rows of this report"
    options: dict[str, Any] = {"sample_weight": training.sample_weight, "n_jobs": n_jobs, "random_state": seed}
    importance = oob_permutation_importance(rows.model, training.X, training.y, n_repeats=n_repeats, **options)
    return importance, "out-of-bag training rows"


def report_on_models(
    scored: Mapping[str, ScoredRows],
    training: Training | None = None,
    *,
    title: str | None = None,
    facts: Mapping[str, str] | None = None,
    intended_use: str | None = None,
    n_bootstrap: int = 500,
    random_state: Any = None,
) -> Report:
    """Return the report on several models that scored the same rows; the types of X may differ between models."""
    given_facts = dict(facts or {}) | ({"Intended use": intended_use} if intended_use else {})
    first = next(iter(scored.values()))
    if any(not np.array_equal(rows.labels, first.labels) for rows in scored.values()):
        raise ValueError("the models of a report must score the same rows, but these have different labels")
    rows = replace(first, X=model_comparison.join_columns([rows.X for rows in scored.values()]))
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    # Without training rows, each model is checked, because each has its own out-of-bag rows.
    rows_to_check = {"": rows} if training else {f"{name}: ": model_rows for name, model_rows in scored.items()}
    pairs = pair_columns(rows, training)
    checks = {prefix: check_overlap(model_rows, training, pairs) for prefix, model_rows in rows_to_check.items()}
    warnings = [f"{prefix}{warning}" for prefix, (_, warning) in checks.items() if warning]
    overlap = next(iter(checks.values()))[0]
    with drawing():
        parts = model_comparison.models_sections(scored, overlap, n_bootstrap, seed)
    parts += [*drift_sections(rows, training, pairs, seed), data_section(rows, training)]
    title, shown = _heading(rows, title, {"Models": ", ".join(scored)}, given_facts)
    return Report(title, render(title, shown, parts, warnings))


def _heading(
    rows: ScoredRows, title: str | None, models: dict[str, str], given_facts: dict[str, str]
) -> tuple[str, dict[str, str]]:
    """Return the title of a page, by default the names of models and classes, and the facts below the title."""
    subject, classes = f"{len(rows.classes)} classes", {"Classes": str(len(rows.classes))}
    if len(rows.classes) == 2:
        positive = f"{np.count_nonzero(rows.labels):,} ({percent(float(rows.frequencies[1]))})"
        subject = " against ".join(rows.classes[::-1])
        classes = {"Positive class": rows.classes[1], "Positive rows": positive}
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    facts = {
        **models,
        "Rows evaluated": f"{rows.labels.size:,}",
        **classes,
        "Date": datetime.fromtimestamp(seconds, UTC).date().isoformat(),
        "Written by": f"aucforest {version('aucforest')}",
    }
    title = f"{', '.join(models.values())}: {subject}" if title is None else title
    return title, given_facts | facts | given_facts  # given facts come first, and replace others of the same name
