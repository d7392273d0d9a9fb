"""Target rates are named, permuted and explained together with their column."""

import numpy as np
import pytest

from aucforest import AUCForestClassifier, inspection
from aucforest.inspection import MixtureDisplay, TreeDisplay, explain, export_text, forest_summary
from tests.estimators.rated import make_interaction, make_rated
from tests.inspection.test_shapley import by_subsets

NAMES = ["merchant", "night", "shop", "merchant: rate", "merchant x night: rate", "shop: rate"]
INPUTS = [0, 1, 2, 0, 0, 2]


@pytest.fixture(scope="module")
def fitted():
    X, y = make_interaction()
    return AUCForestClassifier(24, random_state=0, max_depth=8).fit(X, y), X, y


def test_rates_have_names_and_belong_to_columns(fitted):
    forest, _, _ = fitted
    assert forest.split_features_.tolist() == forest[0].split_features_.tolist() == NAMES
    assert forest_summary(forest).feature_names == NAMES
    by_feature = forest.split_importances_
    of_columns = [by_feature[[0, 3, 4]].sum(), by_feature[1], by_feature[[2, 5]].sum()]
    np.testing.assert_allclose(forest.feature_importances_, of_columns)
    assert by_feature[3:].min() > 0


def test_names_of_the_rates_of_several_classes():
    X, y = make_rated(n_classes=3)
    forest = AUCForestClassifier(2, random_state=0).fit(X, np.array(["A", "B", "C"])[y])
    rates = [f"merchant: rate of {label}" for label in "ABC"]
    assert forest.split_features_.tolist() == ["merchant", "amount", "kind", *rates]


def test_rates_come_after_the_parts_of_dates():
    X, y = make_rated()
    X.insert(0, "day", np.datetime64("2024-01-01") + np.arange(len(X)) % 400)
    forest = AUCForestClassifier(16, random_state=0).fit(X, y)
    names = ["day: time", "merchant", "amount", "kind", "day: month", "day: day of week", "day: hour"]
    assert forest.split_features_.tolist() == [*names, "merchant: rate"]
    importance = inspection.oob_permutation_importance(forest, X, y, n_repeats=1, random_state=0)
    assert importance.feature_names == tuple(names)
    assert importance.importances_mean.argmax() == 1
    explanation = explain(forest, X[:5])
    assert explanation.feature_names == importance.feature_names
    assert explanation.values[:, 4:6].any(axis=0).all()  # parts of a date have values of their own


@pytest.mark.parametrize("encoding", ["sets", "rates", "interactions"])
def test_shapley_values_equal_those_by_subsets_of_columns(fitted, encoding):
    forest, X, _ = fitted
    rows = X[:6].copy()
    rows.loc[0, "merchant"] = np.nan
    trees = [i for i, one in enumerate(forest.encodings_) if one == encoding][:3]
    assert len(trees) == 3
    if encoding == "interactions":
        assert {3, 4} in [set(forest.trees_[i].feature.tolist()) & {0, 3, 4} for i in trees]
    encoded = forest.encode(rows).to_numpy(np.float64)
    for i in trees:
        expected = [by_subsets(forest.trees_[i], row, inputs=INPUTS) for row in encoded]
        np.testing.assert_allclose(explain(forest[i], rows, scale="probability").values, expected, rtol=0, atol=1e-9)


def test_explanations_name_columns_and_categories(fitted):
    forest, X, _ = fitted
    explanation = explain(forest, X[:40])
    assert explanation.values.shape == explanation.data.shape == (40, 3)
    assert explanation.feature_names == ("merchant", "night", "shop")
    merchants = {row: reason.value for row, (reason,) in enumerate(explanation.top(1)) if reason.feature == "merchant"}
    assert merchants == {row: str(X["merchant"][row]) for row in merchants}
    assert len(merchants) > 20


def test_texts_and_plots_name_rates(fitted):
    forest, _, _ = fitted
    tree = forest.encodings_.index("interactions")
    assert "merchant x night: rate <= 0." in export_text(forest[tree])
    # Names of columns are enough, and may be given with those of the rates.
    of_columns = export_text(forest[tree], feature_names=["m", "n", "s"])
    assert "m x n: rate <= 0." in of_columns
    assert of_columns == export_text(forest[tree], feature_names=["m", "n", "s", "m: rate", "m x n: rate", "s: rate"])
    with pytest.raises(ValueError, match="feature_names has 4 names, but the model has 6 features"):
        export_text(forest[tree], feature_names=["m", "n", "s", "t"])
    display = TreeDisplay.from_estimator(forest, tree=tree, max_depth=8)
    assert any("merchant x night: rate <=" in box.get_text() for box in display.annotations_.values())


def test_encodings_have_bars(fitted):
    display, mixture = MixtureDisplay.from_estimator(fitted[0]), fitted[0].encoding_mixture_
    assert display.names[::8] == ["auc, best", "encoding: sets"]
    assert display.names[9:] == ["encoding: rates", "encoding: interactions"]
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_][8:], mixture["n_trees"] / 24)
    np.testing.assert_array_equal(display.oob_scores[8:], mixture["oob_score"])


def test_forests_that_mix_encodings_only():
    X, y = make_rated()
    forest = AUCForestClassifier(10, criterion="gini", random_state=0).fit(X, y)
    assert MixtureDisplay.from_estimator(forest).names == ["encoding: sets", "encoding: rates"]
    forest.set_params(categorical_encoding="rates").fit(X, y)
    assert forest.encodings_ == ["rates"] * 10
    with pytest.raises(ValueError, match="the forest is not mixed"):
        MixtureDisplay.from_estimator(forest)
