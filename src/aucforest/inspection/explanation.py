"""Explanations of predictions: Shapley values, reasons, a table and plots."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._display import Display
from aucforest._memory import check_memory
from aucforest._optional import import_optional
from aucforest._progress import progress_bar
from aucforest.columns.dates import format_time
from aucforest.columns.expansion import columns_of_features, times_in
from aucforest.columns.sparse import as_dense
from aucforest.estimators.log_odds import InputsOfModel, StepsOfMean, explained_models, forests_of, log_odds
from aucforest.estimators.stacking import AUCStackingClassifier
from aucforest.fitting.growing import thread_map
from aucforest.inspection.models import category_names_of, check_count, input_names_of
from aucforest.inspection.shapley import ShapleyTree, add_shapley_values, make_scratch, scratch_shape
from aucforest.metrics.validation import class_codes
from aucforest.tree.tree import Tree

_MOST_TREES = 16  # maximum number of trees at a time
_MOST_PREDICTED = 2**24  # maximum number of class probabilities of the nodes of these trees
_BLOCK_ROWS = 2**10  # number of rows whose log odds are divided among the features at a time
_N_STEPS = 4  # number of steps from no feature known to all known; more steps hardly change the values
# What the values add up to, as text before the name of a class.
_TARGETS = {"log_odds": "log odds of", "probability": "mean probability of the trees of"}
_MOST_DOTS = 2_000  # maximum number of rows in a plot, since more dots would hide each other


class Reason(NamedTuple):
    """A feature of a row, its value, and its contribution to the prediction.

    Attributes
    ----------
    feature : str
        Name of the feature.
    value : float, str or None
        A number, a category, or a date as text; None for a missing value or a category that was not seen in `fit`.
    contribution : float
        What the feature adds to the prediction.
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

    def condition_in(self, format_number: Callable[[float], str]) -> str:
        """Return the feature and its value, with numbers formatted by a function."""
        if self.value is None:
            return f"{self.feature} missing"
        return f"{self.feature} = {self.value if isinstance(self.value, str) else format_number(self.value)}"


@dataclass(frozen=True, repr=False, eq=False)
class Explanation:
    """Contributions of features to the predictions of rows, returned by `explain`. ``explanation[rows]`` selects rows.

    ``shap.Explanation(e.values, e.base_values, e.data, feature_names=e.feature_names)`` converts e for shap.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_features) or (n_samples, n_features, n_classes), float64
        The contributions for the second of two classes, or for each of more than two.
    base_values : ndarray of shape (n_samples,) or (n_samples, n_classes), float64
        The prediction when no feature is known.
    probabilities : ndarray of shape (n_samples,) or (n_samples, n_classes), float64
        The probabilities of ``predict_proba``.
    data : ndarray of shape (n_samples, n_features)
        The rows, with codes for categories and NaN for missing and unseen values.
    feature_names : tuple of str
        Names of the features.
    classes : ndarray of shape (n_classes,)
        Class labels; empty after `of_class`.
    target : str
        What the values add up to, in words.
    scale : "log_odds" or "probability"
        The scale of the values.
    categories : dict of int to sequence of str
        For the index of each categorical feature, the names of its categories in the order of their codes.
    times : frozenset of int
        Indices of the features that are dates, in seconds since 1970-01-01.
    """

    values: NDArray[np.float64]
    base_values: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    data: NDArray[Any]
    feature_names: tuple[str, ...]
    classes: NDArray[Any]
    target: str
    scale: str
    categories: Mapping[int, Sequence[str]]
    times: frozenset[int] = frozenset()

    @property
    def predictions(self) -> NDArray[np.float64]:
        """The sums of base values and values, (n_samples,) or (n_samples, n_classes)."""
        return np.asarray(self.base_values + self.values.sum(axis=1))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        n_rows, n_features = self.values.shape[:2]
        return f"<Explanation of {n_rows:,} samples, {n_features:,} features: {self.target}>"

    def __getitem__(self, rows: Any) -> "Explanation":
        rows = np.atleast_1d(np.arange(len(self))[rows])
        arrays = ("values", "base_values", "probabilities", "data")
        return replace(self, **{name: getattr(self, name)[rows] for name in arrays})

    def of_class(self, label: Any) -> "Explanation":
        """Return the explanation of one class, with `values` of shape (n_samples, n_features).

        Parameters
        ----------
        label : label, or array-like of shape (n_samples,)
            A class label, or one label for each row, such as the predicted labels.

        Raises
        ------
        ValueError
            If a label is not a class, the number of labels is not the number of rows, or a class was chosen before.
        """
        if len(self.classes) == 0:
            raise ValueError(f"a class was chosen before: the values add up to the {self.target}")
        is_single = np.ndim(label) == 0
        labels = np.full(len(self), label) if is_single else label
        codes, _ = class_codes(labels, len(self), labels=self.classes, name="label", of="the explanation")
        rows, values, base, proba = np.arange(len(self)), self.values, self.base_values, self.probabilities
        if values.ndim == 2:
            first_base = (0.0 if self.scale == "log_odds" else 1.0) - base
            values = np.stack((-values, values), axis=2)
            base, proba = np.column_stack((first_base, base)), np.column_stack((1.0 - proba, proba))
        return replace(
            self,
            values=values[rows, :, codes],
            base_values=base[rows, codes],
            probabilities=proba[rows, codes],
            target=f"{_TARGETS[self.scale]} {label if is_single else 'the given class of each row'}",
            classes=self.classes[:0],
        )

    def top(self, k: int = 3) -> list[list[Reason]]:
        """Return the reasons for each prediction: the largest absolute contributions, in descending order.

        Parameters
        ----------
        k : int, default=3
            The maximum number of reasons for a row. Features with a contribution of 0 are left out.

        Raises
        ------
        ValueError
            If `k` is below 1, or there are more than two classes: choose one by `of_class`.
        """
        check_count("k", k, 1)
        values = self._single_class_values()
        top_features = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :k]
        return [
            [self._reason(row, j) for j in features if values[row, j] != 0]
            for row, features in enumerate(top_features.tolist())
        ]

    def to_frame(self) -> Any:
        """Return the values as a pandas DataFrame (extra ``frame``) with a row for each sample."""
        pandas = import_optional("pandas", purpose="to_frame", extra="frame")
        return pandas.DataFrame(self._single_class_values(), columns=list(self.feature_names))

    def plot(self, ax: Any = None, *, max_features: int = 10) -> "ExplanationDisplay":
        """Draw bars for one row, or dots for many rows; see `ExplanationDisplay`.

        Raises ValueError if there are no rows, or more than two classes: choose one by `of_class`.
        """
        check_count("max_features", max_features, 1)
        if len(self._single_class_values()) == 0:
            raise ValueError("the explanation has no rows to draw")
        return ExplanationDisplay(self, max_features=max_features).plot(ax)

    def _single_class_values(self) -> NDArray[np.float64]:
        """Return `values`; raise ValueError if these are of more than two classes."""
        if self.values.ndim == 3:
            raise ValueError(f"the explanation is of {len(self.classes)} classes: choose one by of_class(label)")
        return self.values

    def _reason(self, row: int, feature: int) -> Reason:
        number, value = float(self.data[row, feature]), None
        if not np.isnan(number):
            value = format_time(number) if feature in self.times else number
            value = self.categories[feature][int(number)] if feature in self.categories else value
        return Reason(self.feature_names[feature], value, float(self.values[row, feature]))


@dataclass(repr=False, eq=False)
class ExplanationDisplay(Display):
    """Plot of Shapley values: bars for one row, or dots for many rows; created by `Explanation.plot`.

    For one row, each feature with a large absolute contribution has a bar. A last bar shows the sum of all other
    contributions. For many rows, or a random sample of 2,000 of them, the features with the largest mean absolute
    contributions have a dot for each row. The color of a dot shows the rank of the feature's value, from blue (low) to
    red (high). Missing values and categories are grey.

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
        explanation = self.explanation
        names = [explanation._reason(0, j).condition for j in features.tolist()]
        values = explanation.values[0, features].tolist()
        if len(others) > 0:
            names.append(f"{len(others)} others")
            values.append(float(explanation.values[0, others].sum()))
        self.bars_ = ax.barh(range(len(names)), values, height=0.6, color=["C3" if v > 0 else "C0" for v in values])
        ax.bar_label(self.bars_, [f"{value:+.2g}" for value in values], padding=3, fontsize="small")
        ax.margins(x=0.15)
        label = f"{explanation.target}: {explanation.predictions[0]:.3g}, from {explanation.base_values[0]:.3g}"
        ax.set_xlabel(f"{label}\n(predicted probability: {explanation.probabilities[0]:.3g})")
        return names

    def _draw_rows(self, ax: Any, features: NDArray[np.int64]) -> list[str]:
        cmap = import_optional("matplotlib", purpose="plotting", extra="plot").colormaps["coolwarm"]
        random, explanation = np.random.default_rng(0), self.explanation
        rows = random.permutation(len(explanation))[:_MOST_DOTS]
        for index, j in enumerate(features.tolist()):
            data, colors = explanation.data[rows, j], np.full((len(rows), 4), 0.6)
            is_number = ~np.isnan(data) & (j not in explanation.categories)
            numbers = data[is_number]
            colors[is_number] = cmap(np.searchsorted(np.sort(numbers), numbers) / max(len(numbers), 1))
            heights = index + random.uniform(-0.3, 0.3, len(rows))
            self.points_.append(ax.scatter(explanation.values[rows, j], heights, s=6, c=colors, linewidths=0))
        ax.set_xlabel(f"added to the {explanation.target}; blue to red: low to high values")
        return [explanation.feature_names[j] for j in features.tolist()]


def explain(model: Any, X: Any, *, scale: str = "log_odds", n_jobs: int | None = None, verbose: int = 0) -> Explanation:
    """Explain predictions by the contribution of each feature to the log odds, based on Shapley values.

    For each class, the base value and the values of a row add up to the log odds of ``predict_proba``, including the
    calibration and all members of a stack. Probabilities below 1e-9 are replaced by 1e-9.

    At a split on an unknown feature, a row goes to both children, in proportion to their training weights, as in
    path-dependent TreeSHAP [1]_. In the additive member of a stack, an unknown column has its mean effect. With
    ``scale="probability"`` the values are Shapley values of the mean of the trees. Log odds are a function of the means
    of one or more forests. The change of this function from no feature known to all known is divided into four steps,
    and each step among the features [2]_, [3]_. The result is close to the Shapley values of log odds, but not equal
    ("Say why a row ranks high" in the documentation measures the difference). A categorical column and its target rates
    (target encoding), including those of its interactions, have one value.

    Parameters
    ----------
    model : AUCForestClassifier, AUCTreeClassifier or AUCStackingClassifier
        A fitted model.
    X : array-like of shape (n_samples, n_features)
        The samples to explain, as in ``predict_proba``.
    scale : "log_odds" or "probability", default="log_odds"
        What the values add up to: the log odds, or (not for a stack) the mean probability of the trees before
        calibration, for which Shapley values are exact.
    n_jobs : int or None, default=None
        The number of threads, as in joblib. The result does not depend on it.
    verbose : int, default=0
        Whether to show a progress bar.

    Returns
    -------
    Explanation
        With ``values``, ``base_values``, ``of_class()``, ``top()``, ``to_frame()`` and ``plot()``.

    Raises
    ------
    ValueError
        If X does not match the model, `scale` is unknown or "probability" for a stack, or the values need more than
        half of the machine's memory. They need 40 bytes for each row and feature, 8 with ``scale="probability"`` and
        up to 104 for a stack (more after `refresh`), times the number of classes if there are more than two.
    TypeError
        If the model is not supported, for example a stack with a custom linear model.

    See Also
    --------
    oob_permutation_importance : How much the score of all rows falls when a feature is permuted.

    References
    ----------
    .. [1] S. M. Lundberg, G. Erion, H. Chen, A. DeGrave, J. M. Prutkin, B. Nair, R. Katz, J. Himmelfarb, N. Bansal,
       S.-I. Lee, "From local explanations to global understanding with explainable AI for trees", Nature Machine
       Intelligence 2 (2020), 56-67.
    .. [2] R. J. Aumann, L. S. Shapley, "Values of Non-Atomic Games", Princeton University Press, 1974.
    .. [3] H. Chen, S. M. Lundberg, S.-I. Lee, "Explaining a series of models by propagating Shapley values", Nature
       Communications 13 (2022), 4512.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier, datasets, inspection
    >>> X, rings = datasets.load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(50, random_state=0).fit(X, rings >= 12)
    >>> explanation, proba = inspection.explain(forest, X[:5]), forest.predict_proba(X[:5])
    >>> bool(abs(1 / (1 + np.exp(-explanation.predictions)) - proba[:, 1]).max() < 1e-9)
    True
    >>> [reason.feature for reason in explanation.top(2)[0]]
    ['feature_5', 'feature_7']
    >>> display = explanation.plot(max_features=3)
    """
    if scale not in _TARGETS:
        raise ValueError(f"scale must be one of {', '.join(map(repr, _TARGETS))}, got {scale!r}")
    models = explained_models(model)
    forests = [forests_of(explained) for explained in models]
    if scale == "probability" and isinstance(model, AUCStackingClassifier):
        raise ValueError("scale='probability' is for forests and trees, but the model is a stack: use scale='log_odds'")
    validated = [explained._features_of(X) for explained in models]
    classes, names = model.classes_, input_names_of(model)
    n_rows, n_columns = len(validated[0]), 1 if len(classes) == 2 else len(classes)  # for two classes, only the second
    what = f"Shapley values of {n_rows:,} rows, {len(names):,} features and {len(classes):,} classes"
    n_steps = _N_STEPS if scale == "log_odds" else 1
    n_arrays = n_steps * sum(map(len, forests)) + (scale == "log_odds")
    check_memory(8.0 * n_rows * len(names) * n_columns * n_arrays, what, "explain fewer rows at a time")
    matrices, inputs, shape = list(map(as_dense, validated)), [], (n_steps, n_columns, n_rows, len(names))
    n_trees = sum(len(forest.trees_) for by_name in forests for forest in by_name.values())
    with progress_bar(total=n_trees, desc="trees", verbose=verbose) as progress:
        for explained, by_name, matrix in zip(models, forests, matrices):
            players = _find_players(explained, model)
            mean_of = partial(_mean_of_trees, X=matrix, players=players, shape=shape, n_jobs=n_jobs, progress=progress)
            means = {name: mean_of(forest.trees_) for name, forest in by_name.items()}
            inputs.append(InputsOfModel(explained, means, matrix, players))
    proba = model._predict_valid(matrices[0], X)
    total, base = inputs[0].means["forest"] if scale == "probability" else _divide_log_odds(inputs, proba)
    total = total.reshape(n_columns, n_rows, len(names))
    values, base = (total[0], base[0]) if n_columns == 1 else (np.moveaxis(total, 0, 2), base)
    return Explanation(
        values=values,
        base_values=np.broadcast_to(base, (n_rows, *np.shape(base))),
        probabilities=proba[:, 1] if n_columns == 1 else proba,
        data=matrices[0][:, : len(names)],
        feature_names=tuple(names),
        classes=classes,
        target=f"{_TARGETS[scale]} {classes[1] if n_columns == 1 else 'each class'}",
        scale=scale,
        categories=category_names_of(model),
        times=times_in(model.expanded_),
    )


def _find_players(explained: Any, model: Any) -> NDArray[np.int64]:
    """For each feature of the trees of `explained`, return its player, the index of a feature of `model`.

    `explained` is `model` or, in a refreshed model, the old member. Parts of dates that only the old member uses are
    counted as the first part of the date.
    """
    index_of = {name: index for index, name in enumerate(input_names_of(model))}
    columns = columns_of_features(model.n_features_in_, model.expanded_)
    inputs = zip(input_names_of(explained), columns_of_features(explained.n_features_in_, explained.expanded_))
    indices = [index_of[name] if name in index_of else columns.index(column) for name, column in inputs]
    return np.array(indices)[explained._inputs_of_features]


def _divide_log_odds(inputs: Sequence[InputsOfModel], proba: NDArray[np.float64]) -> StepsOfMean:
    """Return contributions to the log odds, (n_columns, n_samples, n_inputs), and the base values, (n_columns,)."""
    steps, base = inputs[0].means["forest"]
    total = np.empty(steps.shape[1:])
    for start in range(0, len(proba), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        attribution = log_odds([of_model.rows(rows) for of_model in inputs], proba[rows])
        total[:, rows], base = attribution.values[-len(total) :], attribution.base[-len(total) :, 0]
    return total, base


def _mean_of_trees(
    trees: list[Tree],
    X: NDArray[Any],
    players: NDArray[np.int64],
    shape: tuple[int, ...],
    n_jobs: int | None,
    progress: Any,
) -> StepsOfMean:
    """Return the Shapley values of the mean of the trees, in the given shape (see `StepsOfMean`), and base values.

    In each block of rows, trees are added in the same order, so the sums do not depend on n_jobs.
    """
    n_steps, n_columns, _, n_inputs = shape
    total, base = np.zeros(shape), np.zeros(n_columns)

    def add(pairs: list[tuple[ShapleyTree, NDArray[np.float64]]], sizes: tuple[int, int, int], start: int) -> None:
        rows, scratch = slice(start, start + sizes[-1]), make_scratch(sizes)
        transposed = np.array(X[rows].T, dtype=np.float64, order="C")
        for k in range(n_columns):
            sums = np.zeros((n_steps, n_inputs, transposed.shape[1]))
            for tree, values in pairs:
                add_shapley_values(tree, values[k], transposed, scratch, sums)
            total[:, k, rows] += sums.transpose(0, 2, 1)

    most_predicted = max(tree.n_nodes * tree.n_classes for tree in trees)
    batch_size = max(1, min(_MOST_TREES, _MOST_PREDICTED // most_predicted))
    for first in range(0, len(trees), batch_size):
        batch = trees[first : first + batch_size]
        prepared = [ShapleyTree.of(tree, players, n_steps) for tree in batch]
        predicted = [np.array(tree.prediction.T[-n_columns:], order="C") for tree in batch]
        for tree, values in zip(batch, predicted):
            base += values[:, tree.is_leaf] @ tree.weight[tree.is_leaf] / tree.weight[0]
        sizes = scratch_shape(prepared)
        add_block = partial(add, list(zip(prepared, predicted)), sizes)
        list(thread_map(n_jobs)(add_block, range(0, len(X), sizes[-1])))
        progress.update(len(batch))
    total /= len(trees)
    return total, base / len(trees)
