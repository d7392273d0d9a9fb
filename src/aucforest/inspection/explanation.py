"""Explanations of predictions: Shapley values, reasons, a table and plots."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from aucforest._display import Display
from aucforest._memory import check_memory
from aucforest._optional import import_optional
from aucforest._progress import progress_bar
from aucforest.estimators._base import TreeBasedClassifier
from aucforest.fitting.growing import thread_map
from aucforest.inspection.models import category_names_of, check_count, input_names_of, inputs_of, name_of_class
from aucforest.inspection.shapley import ShapleyTree, add_shapley_values, make_scratch, scratch_shape
from aucforest.metrics.validation import class_codes
from aucforest.tables.dates import format_time, times_in
from aucforest.tables.sparse import as_dense
from aucforest.tree.tree import Tree

# Trees between two steps of the progress, and class frequencies of their nodes that are kept at a time, 128 MiB.
_MOST_TREES, _MOST_PREDICTED = 16, 2**24
_BEFORE = "before calibration"
_MOST_DOTS = 2_000  # maximum number of rows in a plot, since more dots would hide each other


class Reason(NamedTuple):
    """A feature of a row, its value, and its contribution to the prediction.

    Attributes
    ----------
    feature : str
        Name of the feature.
    value : float, str or None
        A number, a category, or a date as text; None where it is missing, or a category that was not seen in `fit`.
    contribution : float
        The Shapley value.
    """

    feature: str
    value: float | str | None
    contribution: float

    def __str__(self) -> str:
        return f"{self.condition} ({self.contribution:+.2g})"

    @property
    def condition(self) -> str:
        """The feature and its value, such as "income = 1200"."""
        return self.condition_in(lambda number: f"{number:.5g}")

    def condition_in(self, form: Callable[[float], str]) -> str:
        """Return the feature and its value, with numbers formatted by a function."""
        if self.value is None:
            return f"{self.feature} missing"
        return f"{self.feature} = {self.value if isinstance(self.value, str) else form(self.value)}"


@dataclass(frozen=True, repr=False, eq=False)
class Explanation:
    """The contribution of each feature to the prediction of each row, by `explain`. ``explanation[rows]`` selects rows.

    ``shap.Explanation(e.values, e.base_values, e.data, feature_names=e.feature_names)`` is the same for shap's plots.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_classes), float64
        Shapley values: for the probability of the second of two classes, or for that of each of more classes.
    base_values : ndarray of shape (n_samples,) or (n_samples, n_classes), float64
        What is predicted when no feature is known.
    calibrated : ndarray of shape (n_samples,) or (n_samples, n_classes), float64
        The probabilities of ``predict_proba``: `predictions`, calibrated if the model is.
    data : ndarray of shape (n_samples, n_features)
        The rows, with codes for categories and NaN for missing and unseen values.
    feature_names : tuple of str
        Names of the features.
    classes : ndarray of shape (n_classes,)
        Class labels; none after `of_class`.
    target : str
        What the values add up to, in words.
    categories : dict of int to sequence of str
        Names of the categories of categorical features in the order of their codes, by the index of the feature.
    times : frozenset of int
        The features that are times of dates, in seconds since 1970-01-01.
    """

    values: NDArray[np.float64]
    base_values: NDArray[np.float64]
    calibrated: NDArray[np.float64]
    data: NDArray[Any]
    feature_names: tuple[str, ...]
    classes: NDArray[Any]
    target: str
    categories: Mapping[int, Sequence[str]]
    times: frozenset[int] = frozenset()

    @property
    def predictions(self) -> NDArray[np.float64]:
        """The sum of base value and values, (n_samples,) or (n_samples, n_classes)."""
        return np.asarray(self.base_values + self.values.sum(axis=1))

    @property
    def is_before_calibration(self) -> bool:
        """Whether the model is calibrated, so that `predictions` are not its probabilities."""
        return self.target.endswith(f", {_BEFORE}")

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        n_rows, n_features = self.values.shape[:2]
        return f"<Explanation of {n_rows:,} samples, {n_features:,} features: {self.target}>"

    def __getitem__(self, rows: Any) -> "Explanation":
        rows = np.atleast_1d(np.arange(len(self))[rows])
        return replace(
            self,
            values=self.values[rows],
            base_values=self.base_values[rows],
            calibrated=self.calibrated[rows],
            data=self.data[rows],
        )

    def of_class(self, label: Any) -> "Explanation":
        """Return the explanation of the probability of one class, with `values` of shape (n_samples, n_features).

        Parameters
        ----------
        label : label, or array-like of shape (n_samples,)
            A class, or one for each row, such as the predicted ones.

        Raises
        ------
        ValueError
            If a label is not a class, if there is not one for each row, or if a class was chosen before.
        """
        if len(self.classes) == 0:
            raise ValueError(f"a class was chosen before: this is the {self.target}")
        is_one = np.ndim(label) == 0
        given = np.full(len(self), label) if is_one else label
        codes, _ = class_codes(given, len(self), labels=self.classes, name="label", of="the explanation")
        values, base, calibrated = self.values, self.base_values, self.calibrated
        if values.ndim == 3:
            rows = np.arange(len(self))
            values, base, calibrated = values[rows, :, codes], base[rows, codes], calibrated[rows, codes]
        else:
            values = np.where(codes == 1, 1.0, -1.0)[:, None] * values
            base, calibrated = (np.where(codes == 1, of_second, 1.0 - of_second) for of_second in (base, calibrated))
        target = _target(str(label) if is_one else "a class of each row", self.target.partition(", ")[2])
        return replace(
            self, values=values, base_values=base, calibrated=calibrated, target=target, classes=self.classes[:0]
        )

    def top(self, k: int = 3) -> list[list[Reason]]:
        """Return the reasons for the prediction of each row: the features of greatest absolute value, greatest first.

        Parameters
        ----------
        k : int, default=3
            The maximum number of reasons for a row. Features that add nothing are left out.

        Raises
        ------
        ValueError
            If `k` is below 1, or there are values for each of several classes: choose one by `of_class`.
        """
        check_count("k", k, 1)
        values = self._values_of_one()
        first = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :k]
        return [
            [self._reason(row, j) for j in features if values[row, j] != 0]
            for row, features in enumerate(first.tolist())
        ]

    def to_frame(self) -> Any:
        """Return the values as a pandas DataFrame (extra ``frame``): a line for each row, a column for each feature."""
        pandas = import_optional("pandas", purpose="to_frame", extra="frame")
        return pandas.DataFrame(self._values_of_one(), columns=list(self.feature_names))

    def plot(self, ax: Any = None, *, max_features: int = 10) -> "ExplanationDisplay":
        """Draw bars of one row, or dots of many; see `ExplanationDisplay`.

        Parameters
        ----------
        ax, max_features
            As in `ExplanationDisplay` and its `plot`.

        Raises
        ------
        ValueError
            If there are no rows, or values for each of several classes: choose one by `of_class`.
        ImportError
            If matplotlib is not installed (extra ``plot``).
        """
        check_count("max_features", max_features, 1)
        if len(self._values_of_one()) == 0:
            raise ValueError("the explanation has no rows to draw")
        return ExplanationDisplay(self, max_features=max_features).plot(ax)

    def _values_of_one(self) -> NDArray[np.float64]:
        """Return the values for the probability of one class."""
        if self.values.ndim == 3:
            raise ValueError(f"the explanation is of {len(self.classes)} classes: choose one by of_class(label)")
        return self.values

    def _reason(self, row: int, feature: int) -> Reason:
        """Return the reason for a feature."""
        number, names = float(self.data[row, feature]), self.categories.get(feature)
        value: float | str | None = None if np.isnan(number) else number
        if value is not None and feature in self.times:
            value = format_time(number)
        if value is not None and names is not None:
            value = names[int(number)]
        return Reason(self.feature_names[feature], value, float(self.values[row, feature]))


def _target(classes: str, note: str) -> str:
    """Return the description of the explained quantity."""
    return f"probability of {classes}" + (note and f", {note}")


@dataclass(repr=False, eq=False)
class ExplanationDisplay(Display):
    """Plot of Shapley values: bars for one row, or dots for many rows; created by `Explanation.plot`.

    The plot of one row has the features of greatest absolute value, and below them the sum of all others. The plot of
    many rows has the features of greatest mean absolute value with a dot for each row, or for a random sample of 2,000
    rows. The color of a dot is the rank of the row among the values of the feature, from blue to red; it is grey for
    missing values and categories.

    Parameters
    ----------
    explanation : Explanation
        The explanation to plot.
    max_features : int, default=10
        The maximum number of features to plot.

    Attributes
    ----------
    bars_ : matplotlib BarContainer or None
        The bars of one row.
    points_ : list of matplotlib PathCollection
        The dots of each feature of many rows.
    ax_, figure_ : matplotlib Axes and Figure
        The axes and figure of the plot.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import explain
    >>> X, rings = load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(50, random_state=0).fit(X, rings >= 12)
    >>> display = explain(forest, X[:200]).plot(max_features=3)
    >>> display.ax_.get_yticklabels()[0].get_text()
    'feature_7'
    """

    explanation: Explanation
    _: KW_ONLY
    max_features: int = 10

    def _size(self) -> tuple[float, float]:
        return 6.4, 1.0 + 0.35 * min(self.max_features + 1, len(self.explanation.feature_names))

    def _draw(self, ax: Any) -> None:
        self.bars_: Any = None
        self.points_: list[Any] = []
        order = np.argsort(-np.abs(self.explanation.values).mean(axis=0), kind="stable")
        first, others = order[: self.max_features], order[self.max_features :]
        names = self._draw_row(ax, first, others) if len(self.explanation) == 1 else self._draw_rows(ax, first)
        ax.axvline(0.0, color="0.6", linewidth=1.0)
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.grid(axis="x", alpha=0.3)

    def _draw_row(self, ax: Any, features: NDArray[np.int64], others: NDArray[np.int64]) -> list[str]:
        """Draw bars for features, and one for the sum of all others; return their labels."""
        explained = self.explanation
        names = [explained._reason(0, j).condition for j in features.tolist()]
        values = explained.values[0, features].tolist()
        if len(others) > 0:
            names.append(f"{len(others)} others")
            values.append(float(explained.values[0, others].sum()))
        self.bars_ = ax.barh(range(len(names)), values, height=0.6, color=["C3" if v > 0 else "C0" for v in values])
        ax.bar_label(self.bars_, [f"{value:+.2g}" for value in values], padding=3, fontsize="small")
        ax.margins(x=0.15)
        label = f"{explained.target}: {explained.predictions[0]:.3g}, from {explained.base_values[0]:.3g}"
        if explained.is_before_calibration:
            label += f"\n(after calibration: {explained.calibrated[0]:.3g})"
        ax.set_xlabel(label)
        return names

    def _draw_rows(self, ax: Any, features: NDArray[np.int64]) -> list[str]:
        """Draw dots; return the names of the features."""
        cmap = import_optional("matplotlib", purpose="plotting", extra="plot").colormaps["coolwarm"]
        random, explained = np.random.default_rng(0), self.explanation
        rows = random.permutation(len(explained))[:_MOST_DOTS]
        for place, j in enumerate(features.tolist()):
            data, colors = explained.data[rows, j], np.full((len(rows), 4), 0.6)
            is_number = ~np.isnan(data) & (j not in explained.categories)
            numbers = data[is_number]
            colors[is_number] = cmap(np.searchsorted(np.sort(numbers), numbers) / max(len(numbers), 1))
            heights = place + random.uniform(-0.3, 0.3, len(rows))
            self.points_.append(ax.scatter(explained.values[rows, j], heights, s=6, c=colors, linewidths=0))
        ax.set_xlabel(f"added to the {explained.target}; blue to red: low to high values")
        return [explained.feature_names[j] for j in features.tolist()]


def explain(model: Any, X: Any, *, n_jobs: int | None = None, verbose: int = 0) -> Explanation:
    """Explain predictions by the contribution of each feature: exact Shapley values.

    These are the path-dependent values of TreeSHAP [1]_: where a feature is not known, a row goes both ways at a split
    on it, in proportion to the training weight. They explain the forest as it predicts, with hierarchical shrinkage,
    missing values and sets of categories: ``base_values`` and ``values`` of a row add up to the mean probability of the
    trees.

    A column of categories has one value, also where trees read target rates of it (see ``target_rates_`` of the
    forest): the column and its rates, those of its interactions included, are known together.

    A calibrated forest, which is the default, is explained before calibration, because only the mean over trees is a
    sum that can be divided among features; ``explanation.target`` says so, and ``explanation.calibrated`` has the
    probabilities of ``predict_proba``. With two classes the calibration keeps the order of the samples. With
    ``calibration=None`` the explained predictions are those of ``predict_proba``.

    Parameters
    ----------
    model : AUCForestClassifier or AUCTreeClassifier
        A fitted model.
    X : array-like of shape (n_samples, n_features)
        The samples to explain, as in ``predict_proba``.
    n_jobs : int or None, default=None
        The number of threads, as in joblib. The result does not depend on it.
    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    Explanation
        The explanation, with ``values``, ``base_values``, ``of_class()``, ``top()``, ``to_frame()`` and ``plot()``.

    Raises
    ------
    ValueError
        If X does not fit the model, or if the values would take more than half of the machine's memory: 8 bytes for
        each row and feature, times the number of classes if there are more than two.
    TypeError
        If the model is not supported.

    See Also
    --------
    oob_permutation_importance : How much the score of all rows falls without a feature.

    References
    ----------
    .. [1] S. M. Lundberg, G. Erion, H. Chen, A. DeGrave, J. M. Prutkin, B. Nair, R. Katz, J. Himmelfarb, N. Bansal,
       S.-I. Lee, "From local explanations to global understanding with explainable AI for trees", Nature Machine
       Intelligence 2 (2020), 56-67.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import explain
    >>> X, rings = load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(50, calibration=None, random_state=0).fit(X, rings >= 12)
    >>> explanation = explain(forest, X[:5])
    >>> bool(abs(explanation.predictions - forest.predict_proba(X[:5])[:, 1]).max() < 1e-12)
    True
    >>> [reason.feature for reason in explanation.top(2)[0]]
    ['feature_5', 'feature_7']
    """
    if not isinstance(model, TreeBasedClassifier):
        raise TypeError(f"explain needs an AUCForestClassifier or an AUCTreeClassifier, got {name_of_class(model)}")
    check_is_fitted(model, "trees_")
    X, classes, n_trees = model._features_of(X), model.classes_, len(model.trees_)
    inputs, names = inputs_of(model), input_names_of(model)
    n_columns = 1 if len(classes) == 2 else len(classes)
    what = f"Shapley values of {len(X):,} rows, {len(names):,} features and {len(classes):,} classes"
    check_memory(8.0 * len(X) * len(names) * n_columns, what, "explain fewer rows at a time")
    X = as_dense(X)
    total, base = np.zeros((n_columns, len(X), len(names))), np.zeros(n_columns)
    most_predicted = max(tree.n_nodes for tree in model.trees_) * len(classes)
    step = max(1, min(_MOST_TREES, _MOST_PREDICTED // most_predicted))
    with progress_bar(total=n_trees, desc="trees", verbose=verbose) as progress:
        for start in range(0, n_trees, step):
            trees = model.trees_[start : start + step]
            _add_trees(trees, X, inputs, total, base, n_jobs)
            progress.update(len(trees))
    total /= n_trees
    base /= n_trees
    values, bases = (total[0], base[0]) if n_columns == 1 else (np.moveaxis(total, 0, 2), base)
    bases = np.broadcast_to(bases, (len(X), *np.shape(bases)))
    return Explanation(
        values=values,
        base_values=bases,
        calibrated=_calibrate(model, bases + values.sum(axis=1)),
        data=X[:, : len(names)],
        feature_names=tuple(names),
        classes=classes,
        target=_target(
            str(classes[1]) if n_columns == 1 else "each class",
            "" if model._calibration is None else _BEFORE,
        ),
        categories=category_names_of(model),
        times=times_in(model.dates_),
    )


def _calibrate(model: TreeBasedClassifier, mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities of the model from the mean of its trees, of the second class or of each."""
    if model._calibration is None:
        return mean
    if mean.ndim == 2:
        return model._calibration.apply(mean)
    return model._calibration.apply(np.column_stack([1.0 - mean, mean]))[:, 1]


def _add_trees(
    trees: list[Tree],
    X: NDArray[Any],
    inputs: NDArray[np.int64],
    total: NDArray[np.float64],
    base: NDArray[np.float64],
    n_jobs: int | None,
) -> None:
    """Add values of some trees to total, (n_columns, n_samples, n_inputs), and what they predict without features.

    A block of rows sees the trees in their order, so sums do not depend on n_jobs.
    """
    prepared, predicted = [ShapleyTree.of(tree, inputs) for tree in trees], []
    for tree in trees:
        predicted.append(np.array(tree.prediction.T[-len(total) :], order="C"))
        base += predicted[-1][:, tree.is_leaf] @ tree.weight[tree.is_leaf] / tree.weight[0]
    shape = scratch_shape(prepared)

    def add(start: int) -> None:
        rows, scratch = slice(start, start + shape[-1]), make_scratch(shape)
        columns = np.array(X[rows].T, dtype=np.float64, order="C")
        for k in range(len(total)):
            sums = np.zeros((total.shape[2], columns.shape[1]))
            for tree, values in zip(prepared, predicted):
                add_shapley_values(tree, values[k], columns, scratch, sums)
            total[k, rows] += sums.T

    for _ in thread_map(n_jobs)(add, range(0, len(X), shape[-1])):
        pass
