import pickle
import tracemalloc

import numpy as np

from aucforest.inspection import export_text, forest_summary
from tests.estimators.data import make_table, small_forest, small_tree, walk
from tests.tree.chains import make_chain

X, Y = make_table(n_rows=300, missing=0.1)


def test_counts_are_those_of_walks():
    forest = small_forest(4, bootstrap=False, max_depth=5).fit(X, Y)
    summary = forest_summary(forest)
    for i, tree in enumerate(forest.trees_):
        paths = {tuple(walk(tree, row)) for row in X}
        depths = [len(path) - 1 for path in paths]
        assert summary.n_leaves[i] == len(paths)
        assert summary.n_nodes[i] == len({node for path in paths for node in path})
        assert summary.max_depth[i] == max(depths)
        assert summary.mean_leaf_depth[i] == np.mean(depths)
        assert summary.mean_leaf_samples[i] == len(X) / len(paths)
        used = {tree.feature[node] for path in paths for node in path[:-1]}
        assert summary.n_features_used[i] == len(used)
        assert summary.n_bytes[i] == tree.nbytes
    assert summary.leaves_by_depth.sum() == summary.n_leaves.sum()
    assert len(summary.leaves_by_depth) == summary.max_depth.max() + 1
    assert summary.splits_by_feature.sum() == (summary.n_nodes - summary.n_leaves).sum()
    frame = summary.to_frame()
    assert frame.shape == (4, 7)
    assert frame["n_nodes"].tolist() == summary.n_nodes.tolist()
    html = summary._repr_html_()
    assert html.startswith("<p>4 trees, ")
    assert f"<th>max_depth</th>\n      <td>{summary.max_depth.min()}</td>" in html


def test_the_text_names_what_there_is():
    X_one = np.nan_to_num(X[:, [2, 0]]) * [0, 1]
    summary = forest_summary(small_forest(3, max_depth=2, criterion="gini").fit(X_one, Y))
    assert summary.leaves_by_depth.tolist() == [0, 0, 12]
    text = repr(summary)
    assert "quartiles of leaf depth: 2, 2, 2" in text
    assert text.startswith(f"3 trees, {summary.n_nodes.sum():,} nodes")
    assert "1 of 2 features used, most often 'feature_1'" in text


def test_bytes_of_trees_include_sparse_frequencies():
    X, _ = make_table(n_rows=2000)
    forest = small_forest(3).fit(X, np.arange(2000) % 30)
    assert not isinstance(forest.trees_[0].frequencies, np.ndarray)
    for tree, n_bytes in zip(forest.trees_, forest_summary(forest).n_bytes):
        assert n_bytes == tree.nbytes
        assert abs(n_bytes / len(pickle.dumps(tree)) - 1) < 0.1


def test_a_tree_without_a_cut():
    summary = forest_summary(small_tree().fit(np.zeros((4, 1)), [0, 1, 1, 1]))
    assert summary.n_trees == 1
    assert summary.leaves_by_depth.tolist() == [1]
    assert repr(summary).splitlines()[0].endswith("0 of 1 features used")


def test_features_that_are_only_claimed_take_little_memory():
    trees = [make_chain(2, n_features=2**24)] * 20
    model = small_forest().fit(X, Y)
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
    # some numbers for every feature, whatever the number of trees
    assert peak < 4 * importances.nbytes
