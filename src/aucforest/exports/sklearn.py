"""Export of trees to scikit-learn, for tools that read its trees, such as SHAP, compilers of trees and plots.

scikit-learn converts X to float32 and compares it with float64 thresholds. Trees of this package compare float32 X in
the same way, so thresholds are exported unchanged. Predictions for float64 X can differ, because X is rounded.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import __version__ as sklearn_version
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags

from aucforest._memory import check_memory
from aucforest.exports.expanded import ThresholdNodes, to_threshold_tree
from aucforest.tree.tree import Tree, find_parents

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

# Splits by sets become several splits by thresholds, with copies of the nodes below. This is the maximum memory of the
# copies. It is enough for 2**24 nodes of two classes: a node takes 64 bytes, and 8 for each class.
_MOST_BYTES = 2**24 * (64 + 2 * 8)
_UNDEFINED = -2  # the feature and the threshold of a leaf in scikit-learn


class CalibratedForestClassifier(ClassifierMixin, BaseEstimator):
    """A fitted classifier that calibrates the probabilities of a forest.

    It is not a RandomForestClassifier, because tools that read trees, such as SHAP and treelite, would ignore the
    calibration. Pass them `estimator`, the forest before calibration.

    Parameters
    ----------
    estimator : RandomForestClassifier
        The fitted forest.
    calibration : object
        Its method ``apply`` calibrates class probabilities.
    """

    def __init__(self, estimator: "RandomForestClassifier", calibration: Any) -> None:
        self.estimator = estimator
        self.calibration = calibration

    def __getattr__(self, name: str) -> Any:
        """Return the classes and features of the estimator."""
        if name in ("classes_", "n_features_in_", "feature_names_in_"):
            return getattr(self.estimator, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> "CalibratedForestClassifier":
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> "CalibratedForestClassifier":
        """Return the classifier without fitting it, as `sklearn.frozen.FrozenEstimator` does."""
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict class probabilities, shape (n_samples, n_classes)."""
        return self.calibration.apply(self.estimator.predict_proba(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the most probable class, shape (n_samples,)."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _node_array(tree: Tree, nodes: ThresholdNodes) -> NDArray[Any]:
    """Return the nodes in the array layout of scikit-learn's trees."""
    from sklearn.tree._tree import NODE_DTYPE

    is_leaf = nodes.left < 0
    weight_fraction = nodes.weight / tree.weight[nodes.origin]
    fields = {
        "left_child": nodes.left,
        "right_child": nodes.right,
        "feature": np.where(is_leaf, _UNDEFINED, nodes.feature),
        "threshold": np.where(is_leaf, _UNDEFINED, nodes.threshold),
        "missing_go_to_left": nodes.missing_left & ~is_leaf,
        "impurity": 1.0 - np.square(tree.value).sum(axis=1)[nodes.origin],
        "n_node_samples": np.maximum(np.rint(tree.n_samples[nodes.origin] * weight_fraction), 1),
        "weighted_n_node_samples": nodes.weight,
    }
    # The layout is private to scikit-learn and may change. It must have exactly these fields.
    if set(NODE_DTYPE.names) != set(fields):
        raise NotImplementedError(f"to_sklearn does not support the tree format of scikit-learn {sklearn_version}")
    filled = np.empty(len(is_leaf), dtype=NODE_DTYPE)
    for name, values in fields.items():
        filled[name] = values
    return filled


def _set_attributes(model: Any, tree: Tree, nodes: ThresholdNodes, classes: NDArray[Any]) -> None:
    """Set the fitted attributes of a DecisionTreeClassifier."""
    from sklearn.tree._tree import Tree as NodeArrays

    model.tree_ = NodeArrays(tree.n_features, np.array([tree.n_classes], dtype=np.intp), 1)
    _, depth = find_parents(nodes.left, nodes.right)
    state = {"max_depth": int(depth.max()), "node_count": len(nodes.left), "nodes": _node_array(tree, nodes)}
    model.tree_.__setstate__(state | {"values": tree.prediction[nodes.origin][:, None, :]})
    model.n_features_in_ = model.max_features_ = tree.n_features
    model.classes_, model.n_classes_, model.n_outputs_ = classes, tree.n_classes, 1


def _most_nodes(trees: Sequence[Tree]) -> int:
    """Return the maximum number of nodes including copies; ValueError if the original nodes take too much memory."""
    node_bytes, n_nodes = 64 + 8 * trees[0].n_classes, sum(tree.n_nodes for tree in trees)
    what = f"the {n_nodes:,} nodes for scikit-learn, of {trees[0].n_classes:,} classes,"
    check_memory(node_bytes * n_nodes, what, "fit fewer or smaller trees")
    return n_nodes + _MOST_BYTES // node_bytes


def as_decision_tree(
    trees: Sequence[Tree], classes: NDArray[Any], n_codes: Mapping[int, int]
) -> "DecisionTreeClassifier":
    """Return the only tree of `trees` as a fitted classifier; see `as_random_forest`."""
    from sklearn.tree import DecisionTreeClassifier

    (tree,) = trees
    model = DecisionTreeClassifier()
    _set_attributes(model, tree, to_threshold_tree(tree, n_codes, _most_nodes(trees)), classes)
    return model


def as_random_forest(
    trees: Sequence[Tree], classes: NDArray[Any], n_codes: Mapping[int, int]
) -> "RandomForestClassifier":
    """Return a fitted forest that predicts the mean of the trees; `n_codes` has the number of codes by feature."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    forest = RandomForestClassifier(len(trees))
    forest.estimator_, forest.estimators_ = DecisionTreeClassifier(), []
    n_nodes_left = _most_nodes(trees)
    for tree in trees:
        nodes = to_threshold_tree(tree, n_codes, n_nodes_left)
        n_nodes_left -= len(nodes.left)
        member = DecisionTreeClassifier(max_features=forest.max_features)
        # In the forests of scikit-learn the classes of a tree are indices of the classes of the forest.
        _set_attributes(member, tree, nodes, np.arange(len(classes), dtype=np.float64))
        forest.estimators_.append(member)
    forest.n_features_in_, forest.n_outputs_ = trees[0].n_features, 1
    forest.classes_, forest.n_classes_ = classes, len(classes)
    return forest
