"""Comparing criteria: same rows, same seeds, fair order, clear refusals."""

import numba
import numpy as np
import pytest
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedShuffleSplit

from aucforest.datasets import load_page_blocks
from aucforest.inspection import compare_criteria, folds

QUALITY = ("roc_auc", "average_precision", "g_mean", "brier", "log_loss")


@pytest.fixture(scope="module")
def data():
    X, y = load_page_blocks(return_X_y=True)
    return X[:1500], np.where(y[:1500] == 1, "line", "other")


def run(data, criteria=("auc", "gini"), **params):
    """Compare with a few trees and no progress bar."""
    defaults = {"n_estimators": 5, "cv": 3, "random_state": 0, "verbose": 0}
    return compare_criteria(*data, criteria=criteria, **defaults | params)


def quality(comparison, criterion):
    """Return the figures of one criterion that do not depend on the clock."""
    k = comparison.criteria.index(criterion)
    return [comparison.folds[metric][:, k].tolist() for metric in (*QUALITY, "n_nodes", "depth")]


def test_a_criterion_is_judged_the_same_whatever_stands_beside_it(data):
    alone, among = run(data, ("gini",)), run(data, ("auc", "hellinger", "gini"))
    assert quality(alone, "gini") == quality(among, "gini")
    assert quality(among, "auc") != quality(among, "gini")


@numba.njit
def gini(left, node):
    """Return the gain of "auc", under a name that is taken."""
    return 0.5 * abs(left[0] / node[0] - left[1] / node[1])


def test_a_function_is_compared_under_a_name_of_its_own(data):
    comparison = run(data, (gini, "auc"))
    assert comparison.criteria == ("gini()", "auc", "gini")
    assert quality(comparison, "gini()") != quality(comparison, "gini")
    assert quality(comparison, "gini()")[0] == pytest.approx(quality(comparison, "auc")[0], abs=0.01)


def test_two_names_of_one_criterion_give_the_same_figures(data):
    comparison = run(data, ("entropy", "log_loss"))
    assert quality(comparison, "entropy") == quality(comparison, "log_loss")


def test_gini_is_always_there(data):
    assert run(data, ("auc",)).criteria == ("auc", "gini")
    assert run(data, ("gini", "auc")).criteria == ("gini", "auc")


def test_threads_and_repeats_of_the_call_change_nothing(data):
    assert quality(run(data), "auc") == quality(run(data, n_jobs=2), "auc")
    assert quality(run(data), "auc") != quality(run(data, random_state=1), "auc")


def test_seeds_differ_between_folds(data):
    """The same rows in every fold: what differs is the forest's seed alone."""
    rows = np.arange(len(data[1]))
    comparison = run(data, cv=[(rows[::2], rows[1::2])] * 3)
    assert len(set(quality(comparison, "auc")[4])) == 3


def test_who_is_fitted_first_changes(data, monkeypatch):
    order, fit = [], folds._fit
    monkeypatch.setattr(folds, "_fit", lambda forest, *rows: order.append(forest.criterion) or fit(forest, *rows))
    run(data, ("auc", "gini", "entropy"), cv=4)
    firsts = order[3::3]  # after one tree each to compile
    assert firsts == ["auc", "entropy", "gini", "auc"]
    assert sorted(order) == sorted(["auc", "gini", "entropy"] * 5)


def test_the_table_tells_the_folds(data):
    comparison = run(data, n_repeats=2)
    assert comparison.folds.shape == (6, 2)
    np.testing.assert_array_equal(comparison.folds["fold"], np.repeat(np.arange(6), 2).reshape(6, 2))
    np.testing.assert_array_equal(comparison.folds["criterion"], [["auc", "gini"]] * 6)
    np.testing.assert_array_equal(comparison.folds["n_train"] + comparison.folds["n_test"], 1500)
    assert (comparison.folds["fit_seconds"] > 0).all()


def test_splitters_bring_their_own_folds(data):
    splitter = RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0)
    assert len(run(data, cv=splitter).folds) == 4
    shuffled = run(data, cv=StratifiedShuffleSplit(3, test_size=300, random_state=0)).folds
    assert set(shuffled["n_test"].ravel()) == {300}


def test_the_range_of_the_brier_score_goes_by_the_classes():
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.repeat([0, 1, 2], 4)
    two, three = (run((X, labels), metrics=["brier"]) for labels in (y == 0, y))
    assert (two.n_classes, three.n_classes) == (2, 3)
    row = two.summary()[0]
    assert 0 < row.low < row.mean < row.high <= 1


def test_more_than_two_classes_and_weights():
    X, y = load_page_blocks(return_X_y=True)
    weight = np.where(y == 0, 0.25, 1.0)
    plain = run((X, y))
    weighted = run((X, y), sample_weight=weight)
    assert (plain.folds["roc_auc"] > 0.9).all()
    assert (weighted.folds["log_loss"] != plain.folds["log_loss"]).all()


def test_frames_keep_their_names():
    frame = load_page_blocks(as_frame=True)
    X, y = frame.data[:1500], frame.target[:1500] == 1
    assert quality(run((X, y)), "auc") == quality(run((X.to_numpy(), y.to_numpy())), "auc")


def test_text_is_categories(data):
    X, y = data
    pandas = pytest.importorskip("pandas")
    words = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], np.quantile(X[:, 0], [0.3, 0.7]))]
    frame = pandas.DataFrame(X[:, 1:4], columns=list("abc")).assign(word=words)
    text, category = run((frame, y)), run((frame.astype({"word": "category"}), y))
    assert quality(text, "auc") == quality(category, "auc")
    assert quality(text, "auc") != quality(run((frame.drop(columns="word"), y)), "auc")


def test_progress_is_shown(data, capsys):
    run(data, verbose=1)
    assert "6/6" in capsys.readouterr().err
    run(data, verbose=0)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"criteria": "auc"}, "criteria must be a sequence of at least one name, got 'auc'"),
        ({"criteria": ()}, "criteria must be a sequence of at least one name"),
        ({"criteria": ("auc", "auc")}, "criteria names 'auc' twice"),
        ({"criteria": ("auc", "ginny")}, "'criterion'.*'ginny'"),
        ({"metrics": ("roc_auc", "f1")}, "metrics must be among .*, got 'f1'"),
        ({"cv": 1400}, "class line has [0-9]+ rows, too few for 1400 folds"),
        ({"cv": 1}, "n_splits=1"),
        ({"cv": StratifiedShuffleSplit(2), "n_repeats": 2}, "n_repeats=2 needs an int for cv"),
        ({"cv": StratifiedShuffleSplit(1)}, "at least 2 folds, cv gives 1"),
        (
            {"cv": [(range(1000), range(500))] * 2, "y": np.arange(1500) > 500},
            "fold 0 has no test row of class",
        ),
        ({"sample_weight": [1.0]}, "inconsistent numbers of samples"),
        ({"y": np.linspace(0, 1, 1500)}, "continuous"),
        ({"y": ["a"] * 1500}, "y has one class only: a"),
        ({"y": ["a", "b"]}, "inconsistent numbers of samples"),
    ],
)
def test_refusals(data, params, sentence):
    X, y = data
    with pytest.raises(ValueError, match=sentence):
        run((X, params.pop("y", y)), **params)


def test_labels_without_an_order_are_refused_as_by_a_fit(data):
    with pytest.raises(TypeError, match=r"^y has labels without an order"):
        run((data[0], np.array(["a", 1] * 750, dtype=object)))


def test_an_unknown_parameter_is_the_forests_to_refuse(data):
    with pytest.raises(TypeError, match="n_tree"):
        run(data, n_tree=3)
