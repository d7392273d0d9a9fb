"""Files that the command line wrote when it had two classes in reverse order if the first one was positive."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import aucforest
from aucforest.inspection import oob_permutation_importance
from aucforest.persistence.model_file import ModelFormatError, read_model, write_model
from tests.cli.data import run

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def known():
    """Rows, and what the command line predicted of them by the models when it wrote them."""
    return json.loads((DATA / "positive_first.json").read_text())


@pytest.mark.parametrize("name", ["forest", "stack"])
def test_they_predict_as_they_did(known, name, tmp_path):
    X, expected, file = pd.DataFrame(known["rows"]), known[name], DATA / f"positive_first_{name}.safetensors"
    for _ in range(2):  # and again after a save
        model = aucforest.load(file)
        assert model.classes_.tolist() == ["bad", "good"]
        assert (model.pos_label, model.pos_label_, model.threshold_) == ("bad", "bad", expected["threshold"])
        proba = model.predict_proba(X)
        # the sums of an additive model were in another order
        np.testing.assert_allclose(proba.T, [expected["probability_bad"], expected["probability_good"]], rtol=1e-15)
        np.testing.assert_array_equal(model.predict(X), expected["prediction"])
        assert np.any(proba[:, 0] == model.threshold_)
        model.save(file := tmp_path / "again.safetensors")
    X.to_parquet(tmp_path / "rows.parquet")
    result = run("predict", file, tmp_path / "rows.parquet", "--out", tmp_path / "p.parquet")
    assert result.exit_code == 0, result.output
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "p.parquet"),
        pd.DataFrame(expected)[["prediction", "probability_bad", "probability_good"]],
    )


def test_samples_cannot_be_taken_again(known):
    """Random numbers were not divided by purpose."""
    forest, X = aucforest.load(DATA / "positive_first_forest.safetensors"), pd.DataFrame(known["rows"])
    with pytest.raises(ValueError, match=r"with aucforest 0\.2, and aucforest 0\.3 may take different ones"):
        oob_permutation_importance(forest, X, known["label"])


def test_costs_are_in_the_order_of_the_classes(tmp_path):
    stored = read_model(DATA / "positive_first_forest.safetensors")
    stored._metadata["parameters"]["threshold"] = {"pairs": [["cost", [[0, 1], [10, 0]]]]}
    write_model(tmp_path / "m.safetensors", stored._arrays, stored._metadata)
    assert aucforest.load(tmp_path / "m.safetensors").threshold == {"cost": [[0, 10], [1, 0]]}


@pytest.mark.parametrize("name", ["tree.total", "class_prior_", "drawn", "linear/coef_", "calibration"])
def test_damaged_ones_are_refused(tmp_path, name):
    kind = "stack" if name == "linear/coef_" else "forest"
    stored = read_model(DATA / f"positive_first_{kind}.safetensors")
    for items, value in ((stored._arrays, np.float64(1.0)), (stored._metadata, [1])):
        if name in items:
            items[name] = value
    write_model(tmp_path / "m.safetensors", stored._arrays, stored._metadata)
    with pytest.raises(ModelFormatError):
        aucforest.load(tmp_path / "m.safetensors")
