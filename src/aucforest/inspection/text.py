"""Trees as text."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.inspection import models
from aucforest.tree.tree import LEAF, Tree

_STEP = "|   "
_TURN = "|--- "
# Of all trees together. Lines are indented, so the text of a deep tree takes much more room than the tree.
_MOST_CHARACTERS = 2**28


def export_text(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    max_depth: int = 10,
    decimals: int = 2,
    show_weights: bool = False,
) -> str:
    """Write the rules of a tree, or of all trees of a forest, as text in the manner of scikit-learn's `export_text`.

    Every split also says on which side missing values go; a split that only parts missing values from all others reads
    "is missing" and "is not missing". The split of a categorical feature names the categories on the side without
    missing values; the other side takes all others, those that were not seen in `fit` among them.

    Parameters
    ----------
    model : AUCTreeClassifier, AUCForestClassifier or Tree
        Fitted. The trees of a forest follow each other, each under its number.
    feature_names : sequence of str of length n_features, default=None
        None takes the names seen in `fit`, or else feature_0, feature_1, ...
    class_names : sequence of str of length n_classes, default=None
        None takes the labels seen in `fit`.
    max_depth : int, default=10
        Most splits on the way to a line; what lies below is named by its depth.
    decimals : int, default=2
        Digits after the point of thresholds and weights.
    show_weights : bool, default=False
        Whether a leaf tells the weight of every class.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        For a wrong number of names, a negative `max_depth` or `decimals`, or a text of more than 2**28 characters.
    TypeError
        For another model.

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
    """
    models.check_count("max_depth", max_depth, 0)
    models.check_count("decimals", decimals, 0)
    trees = models.trees_of(model)
    features = models.feature_names_of(model, trees[0].n_features, feature_names)
    classes = models.class_names_of(model, trees[0].n_classes, class_names)
    categories, lines, n_characters = models.category_names_of(model), list[str](), 0

    def leaf(tree: Tree, node: int, label: str) -> str:
        if not show_weights:
            return f"class: {label}"
        weights = ", ".join(f"{weight:.{decimals}f}" for weight in tree.value_of(node) * tree.weight[node])
        return f"weights: [{weights}] class: {label}"

    def lines_of(tree: Tree) -> Iterator[str]:
        """Yield lines depth first and left before right."""
        depths, height, prediction = tree.depth.tolist(), _heights(tree), tree.prediction
        # What is still to be written: the condition that leads to a node, and the node.
        waiting: list[tuple[str | None, int]] = [(None, 0)]
        while waiting:
            condition, node = waiting.pop()
            depth = depths[node]
            if condition is not None:
                yield _STEP * (depth - 1) + _TURN + condition
            if tree.feature[node] == LEAF:
                yield _STEP * depth + _TURN + leaf(tree, node, classes[prediction[node].argmax()])
            elif depth >= max_depth:
                yield _STEP * depth + _TURN + f"truncated branch of depth {height[node]}"
            else:
                left, right = models.conditions(tree, node, features, categories, decimals)
                child = int(tree.left_child[node])
                waiting += [(right, child + 1), (left, child)]

    titles = [[f"\ntree {i}" if i > 0 else "tree 0"] if len(trees) > 1 else [] for i in range(len(trees))]
    for line in chain.from_iterable(chain(title, lines_of(tree)) for title, tree in zip(titles, trees)):
        lines.append(line)
        n_characters += len(line) + 1
        if n_characters > _MOST_CHARACTERS:
            raise ValueError(
                f"the text has more than {_MOST_CHARACTERS} characters: lower max_depth, or write fewer trees"
            )
    return "\n".join(lines)


def _heights(tree: Tree) -> NDArray[np.int64]:
    """Return the number of splits from every node to its deepest leaf."""
    height = np.zeros(tree.n_nodes, dtype=np.int64)
    for node in np.flatnonzero(~tree.is_leaf)[::-1]:
        left = tree.left_child[node]
        height[node] = 1 + max(height[left], height[left + 1])
    return height
