import matplotlib
import numpy as np
import pytest

from aucforest.inspection import TreeDisplay
from aucforest.inspection.models import conditions, feature_names_of
from tests.estimators.data import make_table, small_forest, small_tree
from tests.tree.chains import make_chain

matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

X, Y = make_table(n_rows=300, n_classes=3, missing=0.1)


def test_every_node_has_its_box():
    tree = small_tree(max_depth=4).fit(X, Y)
    display = TreeDisplay.from_estimator(tree, max_depth=None, decimals=3)
    grown = tree.tree_
    assert sorted(display.annotations_) == list(range(grown.n_nodes))
    for node, box in display.annotations_.items():
        text = box.get_text().replace("\nor missing", " or missing")
        assert f"n = {grown.n_samples[node]}" in text
        assert ", ".join(f"{share:.3f}" for share in grown.prediction[node]) in text
        left = "" if grown.is_leaf[node] else conditions(grown, node, feature_names_of(tree, 5), {}, 3)[0]
        assert text.startswith(f"← {left}" if left else "n = ")
    assert len(display.ax_.lines) == grown.n_nodes - 1


def test_nodes_stand_apart_and_left_children_left():
    tree = small_tree(max_depth=6).fit(X, Y)
    display = TreeDisplay.from_estimator(tree, max_depth=None)
    indices = {node: box.get_position() for node, box in display.annotations_.items()}
    assert len(set(indices.values())) == tree.tree_.n_nodes
    for node in np.flatnonzero(~tree.tree_.is_leaf):
        left = int(tree.tree_.left_child[node])
        assert indices[left][0] < indices[node][0] < indices[left + 1][0]
        assert indices[left][1] == indices[left + 1][1] == indices[node][1] - 1


def test_what_lies_deeper_is_left_out():
    forest = small_forest(3, criterion="auc").fit(X, Y)
    display = TreeDisplay.from_estimator(forest, tree=2, max_depth=1)
    assert display.tree is forest.trees_[2]
    assert sorted(display.annotations_) == np.flatnonzero(forest.trees_[2].depth <= 1).tolist()
    assert display.annotations_[0].get_text().startswith("← ")
    assert display.annotations_[1].get_text().endswith("(...)")


def test_a_rare_class_shows_where_it_stands_out():
    """Nobody has a majority of the rare class; colours follow the frequency relative to the root."""
    x = np.repeat([[0.0], [1.0]], 100, axis=0)
    tree = small_tree().fit(x, np.repeat([0, 1, 0], [110, 20, 70]))
    display = TreeDisplay.from_estimator(tree)
    colors = [display.annotations_[node].get_bbox_patch().get_facecolor()[:3] for node in range(3)]
    orange, blue = matplotlib.colors.to_rgb("C1"), matplotlib.colors.to_rgb("C0")
    np.testing.assert_allclose(colors[0], 1.0)
    for color, full in zip(colors[1:], (blue, orange)):
        away, direction = 1 - np.array(color), 1 - np.array(full)
        strength = away @ direction / (direction @ direction)
        assert strength > 0.1
        np.testing.assert_allclose(away, strength * direction, atol=1e-12)


def test_given_axes_and_names():
    _, ax = pyplot.subplots()
    display = TreeDisplay.from_estimator(
        small_tree().fit(X, Y), ax=ax, feature_names=list("abcde"), class_names=list("xyz")
    )
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list("xyz")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tree": 6}, "tree must be an index from 0 to 5, got 6"),
        ({"tree": -1}, "tree must be an integer >= 0, got -1"),
        ({"max_depth": -1}, "max_depth must be an integer >= 0, got -1"),
        ({"decimals": None}, "decimals must be an integer >= 0, got None"),
        ({"class_names": "ab"}, "class_names has 2 names, but the model has 3 classes"),
    ],
)
def test_refusals(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        TreeDisplay.from_estimator(small_forest().fit(X, Y), **options)
    with pytest.raises(ValueError, match=r"^max_depth=None plots 10001 nodes, more than 10000: lower it$"):
        TreeDisplay.from_estimator(make_chain(5000), max_depth=None)
