"""Text, plots and sizes of trees: every line of text is checked by following it."""

import pickle
import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree import export_text as scikit_learn_text

from aucforest.inspection import TreeDisplay, export_text, forest_summary
from aucforest.inspection.models import SplitFormat, feature_names_of
from tests.estimators.data import make_table, small_forest, small_tree
from tests.reference.tree import walk
from tests.tree.chains import make_chain

X, Y = make_table(n_rows=300, n_classes=3, missing=0.15)


def holds(condition, value):
    is_missing = value is None or value != value
    if condition.endswith(("is missing", "is not missing")):
        return is_missing != ("not" in condition)
    if " in {" in condition:
        return (repr(value) in re.search(r"\{(.*)\}", condition)[1].split(", ")) != ("not in" in condition)
    if is_missing:
        return condition.endswith("or missing")
    sign, threshold = re.search(r"(<=|>) (\S+)", condition).groups()
    return value <= float(threshold) if sign == "<=" else value > float(threshold)


def follow(text, row):
    """Return the text of the leaf that a row reaches by the conditions of the lines."""
    depth = 0
    for line in text.splitlines():
        bars, content = line.split("|--- ")
        if len(bars) // 4 == depth:
            feature = re.match(r"feature_(\d+)", content)
            if feature is None:
                return content
            depth += holds(content, row[int(feature[1])])
    raise AssertionError("no line fits")


def make_kinds(n_kinds=6):
    rng = np.random.default_rng(0)
    codes = rng.integers(n_kinds, size=max(400, 4 * n_kinds))
    kinds = np.array([f"k{i:03}" for i in range(n_kinds)], dtype=object)[codes]
    return np.where(rng.random(len(codes)) < 0.1, None, kinds)[:, None], (codes % 2 == 0).astype(int)


@pytest.mark.parametrize("n_kinds", [None, 2, 3, 6, 300])
@pytest.mark.parametrize("seed", range(3))
def test_the_text_predicts_as_the_tree_does(n_kinds, seed):
    """The tables are numbers or categories, with missing values and an unseen category."""
    model, rows = small_forest(1, shrinkage=5.0, random_state=seed).fit(X, Y).estimators_[0], X
    if n_kinds is not None:
        model = small_tree(random_state=seed, max_features=1, categorical_features=[0]).fit(*make_kinds(n_kinds))
        rows = np.array([*model.categories_[0], None, "new"], dtype=object)[:, None]
    text = export_text(model, max_depth=100, decimals=17, show_proba=True)
    for part in ("<= .* or missing", "> .* or missing", "is not missing") if n_kinds is None else ("{",):
        assert re.search(part, text), part
    for row, proba, label in zip(rows, model.predict_proba(rows), model.predict(rows)):
        listed = ", ".join(f"{name} {share:.17f}" for name, share in zip(model.classes_, proba))
        assert follow(text, [None] if row[0] == "new" else row) == f"probabilities: [{listed}] class: {label}"


def test_names_are_given_or_seen_in_fit_or_numbers():
    tree = small_tree().fit(pd.DataFrame(X, columns=list("abcde")), np.array(["no", "yes", "maybe"])[Y])
    leaf = r"weights: \[.*\] probabilities: \[maybe \S+, no \S+, yes \S+\] class: (maybe|no|yes)$"
    assert re.search(leaf, export_text(tree, show_proba=True, show_weights=True), flags=re.MULTILINE)
    numbers = export_text(tree.tree_)
    for i, name in enumerate("abcde"):
        numbers = numbers.replace(f"feature_{i}", name)
    assert numbers == export_text(tree, class_names="012")
    assert numbers.replace("--- a", "--- A") == export_text(tree, class_names="012", feature_names=list("Abcde"))


def test_the_number_of_listed_categories_can_be_limited():
    tree = small_tree(categorical_features=[0], max_features=1).fit(*make_kinds()).tree_
    full, short = (SplitFormat(["kind"], {}, (), 1, most).conditions(tree, 0) for most in (None, 1))
    assert sorted(re.findall(r"\d+", min(full, key=len))) in (["0", "2", "4"], ["1", "3", "5"])
    assert all(re.search(r"\{\d, \.\.\.\}", side) for side in short)


def test_trees_of_a_forest_follow_each_other():
    forest = small_forest(3, max_depth=2).fit(X, Y)
    texts = [f"tree {i}\n{export_text(tree)}" for i, tree in enumerate(forest.estimators_)]
    assert export_text(forest) == "\n\n".join(texts)


def test_the_layout_is_that_of_scikit_learn_and_truncated_branches_have_a_depth():
    table, labels = make_table(n_rows=60)
    theirs = DecisionTreeClassifier(max_features=1, max_depth=1, random_state=0).fit(table[:, :1], labels)
    ours = small_tree(criterion="gini", max_depth=1).fit(table[:, :1], labels)
    for options in ({"show_weights": True, "decimals": 3}, {"class_names": ["no", "yes"]}):
        # scikit-learn writes two blanks after >.
        text = export_text(ours, **options).replace(" or missing", "").replace(" > ", " >  ")
        assert text + "\n" == scikit_learn_text(theirs, **options)
    assert export_text(ours, max_depth=0) == "|--- truncated branch of depth 1"
    tree = small_tree().fit(X, Y)
    depths = re.findall("branch of depth (.*)", export_text(tree, max_depth=2))
    assert max(map(int, depths)) == tree.tree_.max_depth - 2


def test_a_tree_without_a_split():
    model = small_tree().fit(np.zeros((4, 1)), ["b", "a", "c", "c"])
    assert export_text(model) == "|--- class: c"
    assert export_text(model, show_weights=True, decimals=0) == "|--- weights: [1, 1, 2] class: c"
    summary = forest_summary(model)
    assert (summary.n_trees, summary.leaves_by_depth.tolist()) == (1, [1])
    assert repr(summary).splitlines()[0].endswith("0 of 1 features used")


@pytest.mark.parametrize("show", [export_text, TreeDisplay.from_estimator])
@pytest.mark.parametrize(("options", "sentence"), [
    ({"feature_names": ["a"]}, "feature_names has 1 names, but the model has 5 features"),
    ({"class_names": "ab"}, "class_names has 2 names, but the model has 3 classes"),
    ({"max_depth": -1}, "max_depth must be an integer >= 0, got -1"),
    ({"decimals": 1.5}, "decimals must be an integer >= 0, got 1.5"),
])  # fmt: skip
def test_invalid_arguments_are_refused(show, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        show(small_tree().fit(X, Y), **options)


def test_too_large_texts_and_plots_are_refused():
    """The text of a chain grows with the square of its nodes."""
    with pytest.raises(ValueError, match=r"^the report has more than 268435456 characters: lower max_depth"):
        export_text(make_chain(50_000), max_depth=10**6)
    assert len(export_text(make_chain(1000), max_depth=10**6).splitlines()) == 3001
    # In time in proportion to the nodes: with the square of them it would take far too long.
    assert "truncated branch of depth 199990" in export_text(make_chain(200_000))
    with pytest.raises(ValueError, match=r"^max_depth=None plots 10001 nodes, more than 10000: lower it$"):
        TreeDisplay.from_estimator(make_chain(5000), max_depth=None)


def test_every_node_has_its_box():
    tree = small_tree(max_depth=5).fit(X, Y)
    display = TreeDisplay.from_estimator(tree, max_depth=None, decimals=3)
    grown, split_format = tree.tree_, SplitFormat(feature_names_of(tree, 5), {}, (), 3)
    assert sorted(display.annotations_) == list(range(grown.n_nodes))
    for node, box in display.annotations_.items():
        text = box.get_text().replace("\nor missing", " or missing")
        assert f"n = {grown.n_samples[node]}" in text
        assert ", ".join(f"{share:.3f}" for share in grown.prediction[node]) in text
        assert text.startswith("n = " if grown.is_leaf[node] else f"← {split_format.conditions(grown, node)[0]}")
    assert len(display.ax_.lines) == grown.n_nodes - 1
    positions = {node: box.get_position() for node, box in display.annotations_.items()}
    assert len(set(positions.values())) == grown.n_nodes
    for node in np.flatnonzero(~grown.is_leaf):
        left = int(grown.left_child[node])
        assert positions[left][0] < positions[node][0] < positions[left + 1][0]
        assert positions[left][1] == positions[left + 1][1] == positions[node][1] - 1


def test_nodes_below_max_depth_are_not_plotted_on_given_axes():
    forest, ax = small_forest(3, criterion="auc").fit(X, Y), pyplot.subplots()[1]
    names = {"feature_names": list("abcde"), "class_names": list("xyz")}
    display = TreeDisplay.from_estimator(forest, tree=2, max_depth=1, ax=ax, **names)
    assert display.tree is forest.trees_[2]
    assert sorted(display.annotations_) == np.flatnonzero(forest.trees_[2].depth <= 1).tolist()
    assert display.annotations_[0].get_text()[:3] in {f"← {name}" for name in "abcde"}
    assert display.annotations_[1].get_text().endswith("(...)")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list("xyz")
    for number, sentence in [(3, "an index from 0 to 2, got 3"), (-1, "an integer >= 0, got -1")]:
        with pytest.raises(ValueError, match=f"tree must be {sentence}"):
            TreeDisplay.from_estimator(forest, tree=number)


def test_colors_show_frequencies_relative_to_the_root():
    tree = small_tree().fit(np.repeat([[0.0], [1.0]], 100, axis=0), np.repeat([0, 1, 0], [110, 20, 70]))
    display = TreeDisplay.from_estimator(tree)
    colors = [display.annotations_[node].get_bbox_patch().get_facecolor()[:3] for node in range(3)]
    orange, blue = to_rgb("C1"), to_rgb("C0")
    np.testing.assert_allclose(colors[0], 1.0)
    for color, full in zip(colors[1:], (blue, orange)):
        away, direction = 1 - np.array(color), 1 - np.array(full)
        strength = away @ direction / (direction @ direction)
        assert strength > 0.1
        np.testing.assert_allclose(away, strength * direction, atol=1e-12)


def test_the_summary_counts_what_walks_find_and_has_a_text():
    forest = small_forest(4, bootstrap=False, max_depth=5).fit(X, Y)
    summary = forest_summary(forest)
    frame = summary.to_frame()
    for i, tree in enumerate(forest.trees_):
        paths = {tuple(walk(tree, row)) for row in X}
        depths = [len(path) - 1 for path in paths]
        assert frame.loc[i].to_dict() == {
            "n_nodes": len({node for path in paths for node in path}), "n_leaves": len(paths), "max_depth": max(depths),
            "mean_leaf_depth": np.mean(depths), "mean_leaf_samples": len(X) / len(paths),
            "n_features_used": len({tree.feature[node] for path in paths for node in path[:-1]}),
            "n_bytes": tree.nbytes,
        }  # fmt: skip
    assert summary.leaves_by_depth.sum() == summary.n_leaves.sum()
    assert len(summary.leaves_by_depth) == summary.max_depth.max() + 1
    assert summary.splits_by_feature.sum() == (summary.n_nodes - summary.n_leaves).sum()
    assert f"<th>max_depth</th>\n      <td>{summary.max_depth.min()}</td>" in summary._repr_html_()
    X_one = np.nan_to_num(X[:, [2, 0]]) * [0, 1]
    summary = forest_summary(small_forest(3, max_depth=2, criterion="gini").fit(X_one, Y > 0))
    assert summary.leaves_by_depth.tolist() == [0, 0, 12]
    text = repr(summary)
    assert "quartiles of leaf depth: 2, 2, 2" in text
    assert text.startswith(f"3 trees, {summary.n_nodes.sum():,} nodes")
    assert "1 of 2 features used, most often 'feature_1'" in text


def test_features_that_no_tree_uses_take_little_memory():
    """A file may claim millions of features."""
    trees, model = [make_chain(2, n_features=2**24)] * 20, small_forest().fit(X, Y)
    model.trees_, model.n_features_in_ = trees, 2**24
    tracemalloc.start()
    summary, importances = forest_summary(model), model.split_importances_
    assert "most often 'feature_16777215'" in repr(summary)
    assert export_text(model.trees_[0]).startswith("|--- feature_16777215 <= 0.00")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert summary.n_features_used.tolist() == [1] * 20
    assert summary.splits_by_feature[-2:].tolist() == [0, 40]
    assert importances[-2:].tolist() == [0.0, 1.0]
    # Some numbers for every feature, whatever the number of trees.
    assert peak < 4 * importances.nbytes


def test_bytes_of_trees_include_sparse_frequencies():
    tree = small_forest(1).fit(make_table(n_rows=2000)[0], np.arange(2000) % 30).trees_[0]
    assert not isinstance(tree.frequencies, np.ndarray)
    assert tree.nbytes == pytest.approx(len(pickle.dumps(tree)), rel=0.1)
