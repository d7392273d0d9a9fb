"""Text export of trees."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.inspection import models
from aucforest.tables.dates import times_in
from aucforest.tree.tree import LEAF, Tree

_STEP = "|   "
_TURN = "|--- "
_MOST_CHARACTERS = 2**28  # limit for all trees; indented lines make the text of a deep tree much larger than the tree


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

    The report shows to which side of a split missing values go; a split that only separates missing values from the
    others reads "is missing" and "is not missing". For a categorical split it lists the categories on the side without
    missing values. All other categories, including unseen ones, go to the other side.

    Parameters
    ----------
    model : AUCTreeClassifier, AUCForestClassifier or Tree
        A fitted model. The trees of a forest are printed one after another with their numbers.
    feature_names, class_names : sequence of str, default=None
        Names of the features and classes. None uses those seen in `fit`, or else feature_0, feature_1, ... and indices.
    max_depth : int, default=10
        The maximum depth to print. Deeper branches are truncated.
    decimals : int, default=2
        The number of decimal places of thresholds, weights and probabilities.
    show_weights, show_proba : bool, default=False
        Whether to print the class weights and the predicted class probabilities of each leaf.

    Returns
    -------
    str

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
    categories, lines, n_characters = models.category_names_of(model, quoted=True), list[str](), 0
    times = times_in(getattr(model, "dates_", {}))

    def leaf(tree: Tree, node: int, proba: NDArray[np.float64]) -> str:
        text = f"class: {classes[proba.argmax()]}"
        if show_proba:
            listed = ", ".join(f"{label} {part:.{decimals}f}" for label, part in zip(classes, proba))
            text = f"probabilities: [{listed}] {text}"
        if show_weights:
            weights = ", ".join(f"{weight:.{decimals}f}" for weight in tree.value_of(node) * tree.weight[node])
            text = f"weights: [{weights}] {text}"
        return text

    def lines_of(tree: Tree) -> Iterator[str]:
        """Yield lines depth first and left before right."""
        depths, height, prediction = tree.depth.tolist(), _heights(tree), tree.prediction
        # Nodes that are still to be written, each with the condition that leads to the node.
        waiting: list[tuple[str | None, int]] = [(None, 0)]
        while waiting:
            condition, node = waiting.pop()
            depth = depths[node]
            if condition is not None:
                yield _STEP * (depth - 1) + _TURN + condition
            if tree.feature[node] == LEAF:
                yield _STEP * depth + _TURN + leaf(tree, node, prediction[node])
            elif depth >= max_depth:
                yield _STEP * depth + _TURN + f"truncated branch of depth {height[node]}"
            else:
                left, right = models.conditions(tree, node, features, categories, decimals, times=times)
                child = int(tree.left_child[node])
                waiting += [(right, child + 1), (left, child)]

    titles = [["tree 0"], *([f"\ntree {i}"] for i in range(1, len(trees)))] if len(trees) > 1 else [[]]
    for line in chain.from_iterable(chain(title, lines_of(tree)) for title, tree in zip(titles, trees)):
        lines.append(line)
        n_characters += len(line) + 1
        if n_characters > _MOST_CHARACTERS:
            raise ValueError(
                f"the report has more than {_MOST_CHARACTERS} characters: lower max_depth or print fewer trees"
            )
    return "\n".join(lines)


def _heights(tree: Tree) -> NDArray[np.int64]:
    """Return the number of splits from every node to its deepest leaf."""
    height = np.zeros(tree.n_nodes, dtype=np.int64)
    for node in np.flatnonzero(~tree.is_leaf)[::-1]:
        left = tree.left_child[node]
        height[node] = 1 + max(height[left], height[left + 1])
    return height
