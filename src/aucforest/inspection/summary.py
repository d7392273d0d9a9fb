"""Size and depth of the trees of a forest."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._display import HtmlTable
from aucforest._optional import import_optional
from aucforest.inspection.models import feature_names_of, trees_of


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
        """Return the attributes that have a value for each tree."""
        return {field.name: getattr(self, field.name) for field in fields(self)[:7]}

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row for each tree."""
        pandas = import_optional("pandas", purpose="to_frame", extra="frame")
        return pandas.DataFrame(self._columns()).rename_axis("tree")

    def _table(self) -> Any:
        return self.to_frame().agg(["min", "mean", "max"]).T

    def __repr__(self) -> str:
        used = np.count_nonzero(self.splits_by_feature)
        most = int(self.splits_by_feature.argmax())
        features = f"{used} of {len(self.splits_by_feature)} features used"
        if used:
            features += f", most often {self.feature_names[most]!r}"
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
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import forest_summary
    >>> X, rings = load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(10, max_depth=3, random_state=0).fit(X, rings >= 18)
    >>> summary = forest_summary(forest)
    >>> summary.n_trees, int(summary.max_depth.max())
    (10, 3)
    """
    trees = trees_of(model)
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
        feature_names=feature_names_of(model, n_features),
    )
