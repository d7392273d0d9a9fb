"""Text export, plots and sizes of trees."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from itertools import chain, starmap
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from aucforest._display import Display, HtmlTable
from aucforest._optional import import_optional
from aucforest.columns.expansion import times_in
from aucforest.inspection import models
from aucforest.tree.tree import LEAF, Tree

_INDENT = "|   "
_BRANCH = "|--- "
_MOST_CHARACTERS = 2**28  # maximum length of a text; indents make the text of a deep tree much larger than the tree
_MOST_CATEGORIES = 4  # maximum number of categories in a box
_MOST_NODES = 10_000  # maximum number of boxes; each takes about a millisecond


def export_text(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    max_depth: int = 10,
    decimals: int = 2,
    show_weights: bool = False,
    show_proba: bool = False,
) -> str:
    """Build a text report of the rules of a tree or a forest, like scikit-learn's `export_text`.

    The report shows to which side of a split missing values go. For a categorical split, it lists the categories that
    go to the other side. All other categories, including unseen ones, go to the side of missing values.

    Parameters
    ----------
    model : AUCTreeClassifier, AUCForestClassifier or Tree
        A fitted model. The trees of a forest are printed one after another with their numbers.
    feature_names : sequence of str of length n_features, default=None
        Names of the features. None uses the names seen in `fit`, or else feature_0, feature_1, ...
    class_names : sequence of str of length n_classes, default=None
        Names of the classes. None uses the labels seen in `fit`.
    max_depth : int, default=10
        The maximum depth to print. Deeper branches are truncated.
    decimals : int, default=2
        The number of decimal places of thresholds, weights and probabilities.
    show_weights, show_proba : bool, default=False
        Whether to print the class weights, and the predicted class probabilities, of each leaf.

    Returns
    -------
    str
        The rules, one in each line.

    Raises
    ------
    ValueError
        If the number of names is wrong, `max_depth` or `decimals` is negative, or the report exceeds 2**28 characters.
    TypeError
        If the model is not supported.

    Examples
    --------
    >>> from aucforest import AUCTreeClassifier
    >>> from aucforest.inspection import export_text
    >>> X = [[1.0, 5.0], [2.0, 3.0], [3.0, 5.0], [4.0, 1.0], [float("nan"), 2.0]]
    >>> tree = AUCTreeClassifier(random_state=0).fit(X, ["no", "no", "yes", "yes", "yes"])
    >>> print(export_text(tree, feature_names=["age", "size"]))
    |--- age <= 2.50
    |   |--- class: no
    |--- age > 2.50 or missing
    |   |--- class: yes
    >>> print(export_text(tree, feature_names=["age", "size"], max_depth=1, show_proba=True))
    |--- age <= 2.50
    |   |--- probabilities: [no 1.00, yes 0.00] class: no
    |--- age > 2.50 or missing
    |   |--- probabilities: [no 0.00, yes 1.00] class: yes
    """
    models.check_count("max_depth", max_depth, 0)
    models.check_count("decimals", decimals, 0)
    trees = models.trees_of(model)
    features = models.feature_names_of(model, trees[0].n_features, feature_names)
    classes = models.class_names_of(model, trees[0].n_classes, class_names)
    categories, times = models.category_names_of(model, quoted=True), times_in(getattr(model, "expanded_", {}))
    split_format = models.SplitFormat(features, categories, times, decimals)

    def leaf_text(tree: Tree, node: int, proba: NDArray[np.float64]) -> str:
        text = f"class: {classes[proba.argmax()]}"
        if show_proba:
            listed = ", ".join(f"{label} {part:.{decimals}f}" for label, part in zip(classes, proba))
            text = f"probabilities: [{listed}] {text}"
        if show_weights:
            weights = ", ".join(f"{weight:.{decimals}f}" for weight in tree.value_of(node) * tree.weight[node])
            text = f"weights: [{weights}] {text}"
        return text

    def lines_of(number: int, tree: Tree) -> Iterator[str]:
        """Yield the number of the tree if there are several, then its nodes depth first and left before right."""
        if len(trees) > 1:
            yield f"tree {number}" if number == 0 else f"\ntree {number}"
        depths, height, prediction = tree.depth.tolist(), _heights(tree), tree.prediction
        # Nodes to write, each with the condition that leads to the node.
        waiting: list[tuple[str | None, int]] = [(None, 0)]
        while waiting:
            condition, node = waiting.pop()
            depth = depths[node]
            if condition is not None:
                yield _INDENT * (depth - 1) + _BRANCH + condition
            if tree.feature[node] == LEAF:
                yield _INDENT * depth + _BRANCH + leaf_text(tree, node, prediction[node])
            elif depth >= max_depth:
                yield _INDENT * depth + _BRANCH + f"truncated branch of depth {height[node]}"
            else:
                left, right = split_format.conditions(tree, node)
                child = int(tree.left_child[node])
                waiting += [(right, child + 1), (left, child)]

    lines, n_characters = list[str](), 0
    for line in chain.from_iterable(starmap(lines_of, enumerate(trees))):
        lines.append(line)
        n_characters += len(line) + 1
        if n_characters > _MOST_CHARACTERS:
            raise ValueError(
                f"the report has more than {_MOST_CHARACTERS} characters: lower max_depth or print fewer trees"
            )
    return "\n".join(lines)


def _heights(tree: Tree) -> NDArray[np.int64]:
    """Return the number of splits between each node and the deepest leaf below the node."""
    height = np.zeros(tree.n_nodes, dtype=np.int64)
    for node in np.flatnonzero(~tree.is_leaf)[::-1]:
        left = tree.left_child[node]
        height[node] = 1 + max(height[left], height[left + 1])
    return height


@dataclass(repr=False, eq=False)
class TreeDisplay(Display):
    """Plot of a tree with the split, the number of samples and the class probabilities of each node.

    Use `from_estimator` to create and plot a display.

    Parameters
    ----------
    tree : Tree
        The tree to plot.
    feature_names, class_names : sequence of str
        Names of the features and classes.
    categories : mapping of int to sequence of str, default=None
        Names of the categories of categorical features by feature index.
    max_depth : int or None, default=None
        The maximum depth to plot. None plots the whole tree.
    decimals : int, default=2
        The number of decimal places of thresholds and probabilities.
    times : collection of int, default=()
        Indices of the features that are dates in seconds, whose thresholds are shown as dates.

    Attributes
    ----------
    annotations_ : dict of int to matplotlib Text
        The box of each node by node index.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import TreeDisplay
    >>> abalone = load_abalone(as_frame=True)
    >>> X = abalone.data.drop(columns="sex")
    >>> forest = AUCForestClassifier(5, max_depth=2, random_state=0).fit(X, abalone.target >= 18)
    >>> display = TreeDisplay.from_estimator(forest, tree=3)
    >>> len(display.annotations_)
    5
    """

    tree: Tree
    feature_names: Sequence[str]
    class_names: Sequence[str]
    _: KW_ONLY
    categories: Mapping[int, Sequence[str]] | None = None
    max_depth: int | None = None
    decimals: int = 2
    times: Collection[int] = ()

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        tree: int = 0,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        max_depth: int | None = 3,
        decimals: int = 2,
        ax: Any = None,
    ) -> Self:
        """Plot a tree of a fitted model.

        Parameters
        ----------
        estimator : AUCForestClassifier, AUCTreeClassifier or Tree
            A fitted model.
        tree : int, default=0
            The index of the tree in a forest.
        feature_names, class_names, decimals
            As in `export_text`.
        max_depth : int or None, default=3
            As in `TreeDisplay`.
        ax
            As in `plot`.

        Returns
        -------
        TreeDisplay

        Raises
        ------
        ValueError, TypeError
            As in `export_text`, or if the index is wrong, or more than 10,000 nodes would be plotted.
        """
        trees = models.trees_of(estimator)
        models.check_count("tree", tree, 0)
        if tree >= len(trees):
            raise ValueError(f"tree must be an index from 0 to {len(trees) - 1}, got {tree}")
        if max_depth is not None:
            models.check_count("max_depth", max_depth, 0)
        models.check_count("decimals", decimals, 0)
        display = cls(
            trees[tree],
            models.feature_names_of(estimator, trees[tree].n_features, feature_names),
            models.class_names_of(estimator, trees[tree].n_classes, class_names),
            categories=models.category_names_of(estimator, quoted=True),
            max_depth=max_depth,
            decimals=decimals,
            times=times_in(getattr(estimator, "expanded_", {})),
        )
        return display.plot(ax)

    def _size(self) -> tuple[float, float]:
        nodes, x_positions = self._positions()
        return max(4.0, 1.6 * (x_positions[nodes].max() + 1)), max(2.0, 1.4 * (self.tree.depth[nodes].max() + 1))

    def _draw(self, ax: Any) -> None:
        pyplot = import_optional("matplotlib.pyplot", purpose="plotting", extra="plot")
        (nodes, x_positions), depth, prediction = self._positions(), self.tree.depth, self.tree.prediction
        self.annotations_ = {}
        for node in nodes.tolist():
            child = int(self.tree.left_child[node])
            if shows_split := child in nodes:
                for k in (child, child + 1):
                    ax.plot(x_positions[[node, k]], -depth[[node, k]], color="0.6", linewidth=1.0, zorder=1)
            self.annotations_[node] = self._draw_node(node, x_positions[node], shows_split, prediction)
        patches = [pyplot.Rectangle((0, 0), 1, 1, facecolor=_class_color(k, 0.6)) for k in range(self.tree.n_classes)]
        ax.legend(patches, self.class_names, title="more frequent than at the root", fontsize=8, title_fontsize=8)
        ax.set_xlim(x_positions[nodes].min() - 0.6, x_positions[nodes].max() + 0.6)
        ax.set_ylim(-depth[nodes].max() - 0.5, 0.5)
        ax.set_axis_off()

    def _positions(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the plotted nodes, and horizontal positions by node index. Parents are midway between children."""
        tree, depth = self.tree, self.tree.depth
        nodes = np.flatnonzero(depth <= (depth.max() if self.max_depth is None else self.max_depth))
        if len(nodes) > _MOST_NODES:
            raise ValueError(f"max_depth={self.max_depth} plots {len(nodes)} nodes, more than {_MOST_NODES}: lower it")
        plotted, plotted_leaves, waiting = set(nodes.tolist()), list[int](), [0]
        while waiting:
            node = waiting.pop()
            child = int(tree.left_child[node])
            if child in plotted:
                waiting += [child + 1, child]
            else:
                plotted_leaves.append(node)
        x_positions = np.full(tree.n_nodes, np.nan)
        x_positions[plotted_leaves] = range(len(plotted_leaves))
        for node in nodes[::-1]:  # children come after their parents
            if np.isnan(x_positions[node]):
                child = tree.left_child[node]
                x_positions[node] = x_positions[child : child + 2].mean()
        return nodes, x_positions

    def _draw_node(self, node: int, x: float, shows_split: bool, prediction: NDArray[np.float64]) -> Any:
        """Draw the box of a node, in the color of the class with the largest probability relative to the root.

        By probability alone, a rare class would never determine the color.
        """
        tree, root, value = self.tree, prediction[0], prediction[node]
        lines = [f"n = {tree.n_samples[node]:,}", ", ".join(f"{p:.{self.decimals}f}" for p in value)]
        if shows_split:
            split_format = models.SplitFormat(
                self.feature_names, self.categories or {}, self.times, self.decimals, _MOST_CATEGORIES
            )
            left, _ = split_format.conditions(tree, node)
            lines.insert(0, f"← {left}".replace(" or missing", "\nor missing"))
        elif tree.feature[node] != LEAF:
            lines.append("(...)")
        lift = np.divide(value, root, out=np.zeros_like(value), where=root > 0)
        lift /= lift.sum()
        top = int(lift.argmax())
        strength = 0.6 * (lift[top] - 1 / len(lift)) / (1 - 1 / len(lift))
        style = {"ha": "center", "va": "center", "fontsize": 8, "zorder": 2}
        box = {"boxstyle": "round", "facecolor": _class_color(top, strength), "edgecolor": "0.4"}
        return self.ax_.text(x, -tree.depth[node], "\n".join(lines), bbox=box, **style)


def _class_color(k: int, strength: float) -> NDArray[np.float64]:
    """Return the color of class k, which is mixed with white if `strength` is below 1."""
    colors = import_optional("matplotlib.colors", purpose="plotting", extra="plot")
    return 1.0 - strength * (1.0 - np.array(colors.to_rgb(f"C{k % 10}")))


@dataclass(frozen=True, repr=False, eq=False)
class ForestSummary(HtmlTable):
    """Size and depth of the trees of a forest, as returned by `forest_summary`.

    Attributes
    ----------
    n_nodes, n_leaves, max_depth : ndarray of shape (n_trees,), int64
        Number of nodes, number of leaves and depth of each tree.
    mean_leaf_depth, mean_leaf_samples : ndarray of shape (n_trees,), float64
        Mean depth of the leaves of each tree, and mean number of distinct training samples in a leaf.
    n_features_used, n_bytes : ndarray of shape (n_trees,), int64
        Number of features that each tree uses, and its memory in bytes.
    leaves_by_depth : ndarray of shape (max depth + 1,), int64
        Number of leaves of all trees at each depth.
    splits_by_feature : ndarray of shape (n_features,), int64
        Number of splits of all trees on each feature.
    feature_names : sequence of str
        Names of the features.
    """

    n_nodes: NDArray[np.int64]
    n_leaves: NDArray[np.int64]
    max_depth: NDArray[np.int64]
    mean_leaf_depth: NDArray[np.float64]
    mean_leaf_samples: NDArray[np.float64]
    n_features_used: NDArray[np.int64]
    n_bytes: NDArray[np.int64]
    leaves_by_depth: NDArray[np.int64]
    splits_by_feature: NDArray[np.int64]
    feature_names: Sequence[str]

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.n_nodes)

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self)[:7]}

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row for each tree."""
        pandas = import_optional("pandas", purpose="to_frame", extra="frame")
        return pandas.DataFrame(self._columns()).rename_axis("tree")

    def _table(self) -> Any:
        return self.to_frame().agg(["min", "mean", "max"]).T

    def __repr__(self) -> str:
        n_used = np.count_nonzero(self.splits_by_feature)
        most_used = int(self.splits_by_feature.argmax())
        features = f"{n_used} of {len(self.splits_by_feature)} features used"
        if n_used:
            features += f", most often {self.feature_names[most_used]!r}"
        size = f"{self.n_nodes.sum():,} nodes, {self.n_bytes.sum() / 2**20:.1f} MiB"
        lines = [f"{self.n_trees} trees, {size}, {features}", f"{'':20}{'min':>12}{'mean':>12}{'max':>12}"]
        for name, values in self._columns().items():
            decimals = 0 if values.dtype.kind == "i" else 2
            cells = f"{values.min():>12,.{decimals}f}{values.mean():>12,.2f}{values.max():>12,.{decimals}f}"
            lines.append(f"{name.replace('_', ' '):20}{cells}")
        cumulated = np.cumsum(self.leaves_by_depth) / self.leaves_by_depth.sum()
        quartiles = ", ".join(map(str, np.searchsorted(cumulated, [0.25, 0.5, 0.75])))
        lines.append(f"quartiles of leaf depth: {quartiles}")
        return "\n".join(lines)


def forest_summary(model: Any) -> ForestSummary:
    """Summarize the size and depth of the trees of a forest.

    Parameters
    ----------
    model : AUCForestClassifier, AUCTreeClassifier or Tree
        A fitted model.

    Returns
    -------
    ForestSummary

    Raises
    ------
    TypeError
        If the model is not supported.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier, datasets, inspection
    >>> X, rings = datasets.load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(10, max_depth=3, random_state=0).fit(X, rings >= 18)
    >>> summary = inspection.forest_summary(forest)
    >>> summary.n_trees, int(summary.max_depth.max())
    (10, 3)
    """
    trees = models.trees_of(model)
    n_features = trees[0].n_features
    depths = [tree.depth[tree.is_leaf] for tree in trees]
    split_features = [tree.feature[~tree.is_leaf] for tree in trees]
    return ForestSummary(
        n_nodes=np.array([tree.n_nodes for tree in trees]),
        n_leaves=np.array([tree.n_leaves for tree in trees]),
        max_depth=np.array([tree.max_depth for tree in trees]),
        mean_leaf_depth=np.array([depth.mean() for depth in depths]),
        mean_leaf_samples=np.array([tree.n_samples[tree.is_leaf].mean() for tree in trees]),
        n_features_used=np.array([len(np.unique(features)) for features in split_features]),
        n_bytes=np.array([tree.nbytes for tree in trees]),
        leaves_by_depth=np.bincount(np.concatenate(depths)),
        splits_by_feature=np.bincount(np.concatenate(split_features), minlength=n_features),
        feature_names=models.feature_names_of(model, n_features),
    )
