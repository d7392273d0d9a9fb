import re
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.base import clone

from aucforest import AUCForestClassifier
from aucforest.monitoring import CBPE, Chunks, shift
from tests.monitoring.data import ONE, THREE, classes_drawn, drawn, figures, fit, only

NAMED = np.array(["ill", "well"])


def polars_columns(score, y_true, y_pred):
    return pl.DataFrame({"score": score, "label": NAMED[y_true], "guess": NAMED[y_pred]}).get_columns()


def pandas_columns(score, y_true, y_pred):
    """Return columns of a frame with a shuffled index of two levels, and nullable types."""
    order = np.random.default_rng(0).permutation(score.size)
    frame = pd.DataFrame({"score": score, "label": NAMED[y_true], "guess": NAMED[y_pred]}, index=[order, order])
    return frame["score"].astype("Float64"), frame["label"].astype("string"), frame["guess"].astype("category")


def matrix_columns(score, y_true, y_pred):
    return score[:, None], y_true[:, None], y_pred


def without(column, rows):
    """Return a column with missing values in some rows."""
    gone = np.isin(np.arange(len(column)), rows)
    if isinstance(column, pl.Series):
        return column.clone().scatter(rows, None)
    return column.where(~gone) if isinstance(column, pd.Series) else np.where(gone, np.nan, column)


@pytest.mark.parametrize("kind", [polars_columns, pandas_columns, matrix_columns])
def test_frames_and_columns_give_the_estimates_of_arrays(kind):
    score, y_true = drawn()
    arrays = score, y_true, (score > 0.4).astype(int)
    results = []
    for scores, labels, guesses in (arrays, kind(*arrays)):
        cbpe = CBPE(["roc_auc", "f1"]).fit(y_score=scores, y_true=labels, y_pred=guesses)
        results.append(cbpe.estimate(scores, y_pred=guesses, y_true=labels).estimates)
    assert results[0] == results[1]


@pytest.mark.parametrize("kind", [lambda *arrays: arrays, polars_columns, pandas_columns])
def test_missing_values_are_errors_or_dropped(kind):
    score, y_true = drawn()
    scores, labels, _ = kind(score, y_true, y_true)
    gaps = {"y_score": without(scores, [0, 1, 2]), "y_true": without(labels, [3, 4])}
    with pytest.raises(ValueError, match="y_score has 3 and y_true 2 missing values"):
        CBPE().fit(**gaps)
    objects, labels = (np.array([pd.NA, *column[1:]], dtype=object) for column in (score, y_true))
    with pytest.raises(ValueError, match="y_score has 1 and y_true 1 missing values"):
        CBPE().fit(y_score=objects, y_true=labels)
    with pytest.warns(UserWarning, match="y_score has 3 and y_true 2 missing values: dropped"):
        result = CBPE(on_nan="drop").fit(**gaps).estimate(score, chunks=ONE)
    assert figures(result) == figures(CBPE().fit(y_score=score[5:], y_true=y_true[5:]).estimate(score, chunks=ONE))


def test_two_columns_are_probabilities():
    (score, y_true), (p, labels, _) = drawn(), classes_drawn()
    for columns in (np.column_stack([score, score]), np.column_stack([-score, 1 + score])):
        with pytest.raises(ValueError, match="two columns of y_score must be probabilities that sum to 1"):
            CBPE().fit(y_score=columns, y_true=y_true)
    with pytest.raises(ValueError, match="y_score has 2 columns, but there are 3 classes"):
        CBPE().fit(y_score=p[:, :2], y_true=labels)
    both = np.column_stack([1 - score, score])
    assert figures(CBPE().fit(y_score=both, y_true=y_true).estimate(both)) == figures(fit()[0].estimate(score))
    both[:3, 0] = np.nan
    with pytest.warns(UserWarning, match="y_score has 3"):
        CBPE(on_nan="drop").fit(y_score=both, y_true=y_true)


def test_columns_without_a_curve_must_be_probabilities():
    """They must be in [0, 1] even if other columns have a curve."""
    p, labels, _ = classes_drawn()
    wide, two_curves = p * [1.0, 1.0, 3.0], CBPE(calibration=[True, True, False]).fit(y_score=p, y_true=labels)
    for refused in (
        lambda: CBPE(calibration="none").fit(y_score=3 * p[:, 0], y_true=labels == "a"),
        lambda: clone(two_curves).fit(y_score=wide, y_true=labels),
        lambda: two_curves.estimate(wide, chunks=ONE),
    ):
        with pytest.raises(ValueError, match=r"y_score must be in \[0, 1\]"):
            refused()
    cbpe = CBPE(calibration=[True, True, True]).fit(y_score=wide, y_true=labels)
    assert only(cbpe.estimate(wide, chunks=ONE)).estimate > 0.5


def test_importance_weights_need_every_reference_row(monkeypatch):
    """Without importance weights, the domain classifier uses a sample of them."""
    monkeypatch.setattr(shift, "MOST_ROWS", 50)
    score, y_true = drawn(200)
    X = score[:, None]
    for importance_weighted in (False, True):
        cbpe = CBPE(importance_weighted=importance_weighted, calibration="isotonic")
        cbpe.fit(y_score=score, y_true=y_true, X=X, chunks=THREE)
        assert 0.5 < only(cbpe.estimate(score, X=X, chunks=ONE)).estimate < 1.0
    with pytest.raises(ValueError, match="importance_weighted=True needs X"):
        cbpe.estimate(score, chunks=ONE)


def test_chunks_are_objects_and_not_the_periods_of_the_reference():
    """Timestamps in fit belong to the reference, even if there are as many new rows."""
    cbpe, (score, y_true) = fit()
    for call in (lambda: cbpe.fit(y_score=score, y_true=y_true, chunks=100), lambda: cbpe.estimate(score, chunks=3)):
        with pytest.raises(TypeError, match=r"chunks must be created by Chunks\.by_size, by_number or by_period"):
            call()
    weeks = Chunks.by_period(pd.date_range("2024-01-01", periods=score.size, freq="h"), "W")
    for random_state in (None, np.int64(3)):
        cbpe = CBPE(random_state=random_state).fit(y_score=score, y_true=y_true, chunks=weeks)
        with pytest.raises(ValueError, match="pass chunks: the timestamps in fit were those of the reference"):
            cbpe.estimate(score)
        assert len(cbpe.estimate(score, chunks=ONE).estimates) == 1


@pytest.mark.parametrize("form", ["category", "polars", "object"])
def test_the_features_of_the_forest_may_be_categories(form):
    """The domain classifier detects a shift of a text column alone, also by an unseen category."""
    random, towns = np.random.default_rng(0), np.array(["Łódź", "Kraków", "Gdańsk", None], dtype=object)
    frame = pd.DataFrame({"size": random.normal(size=900), "town": towns[random.integers(4, size=900)]})
    y = random.random(900) < expit(2 * frame["size"] + (frame["town"] == "Łódź"))
    frame.loc[700:, "town"] = np.where(random.random(200) < 0.5, "Łódź", "Poznań")
    as_category = frame.astype({"town": "category"})
    forms = {"category": as_category, "polars": pl.from_pandas(frame), "object": frame.to_numpy()}
    X, options = forms[form], {"categorical_features": [1]} if form == "object" else {}
    forest = AUCForestClassifier(20, oob_score=True, min_samples_leaf=5, random_state=0, **options)
    forest.fit(X[:500], y[:500])
    cbpe = CBPE.from_forest(forest, y[:500], X[:500], chunks=THREE, importance_weighted=form == "object")
    shifts = [cbpe.estimate(forest.predict_proba(new), X=new, chunks=ONE).shifts for new in (X[500:700], X[700:])]
    (same,), (moved,) = (of_chunks.values() for of_chunks in shifts)
    assert abs(same.domain_auc - 0.5) < 0.1
    assert moved.domain_auc > 0.7
    with pytest.raises(ValueError, match=r"yet now missing:\n- size|X has 1 features"):
        cbpe.estimate(forest.predict_proba(X[500:]), X=X[500:, 1:] if form == "object" else frame[["town"]][500:])


def test_features_that_are_neither_numbers_nor_categories_are_named():
    score, y_true = drawn(800)
    frame = pd.DataFrame({"a": score, "b": score})
    for X, error, sentence in (
        (frame[:3], ValueError, r"X must have 800 samples and two dimensions, but has shape \(3, 2\)"),
        (frame.assign(b=[*["high"] * 799, 3.5]), TypeError, "X: column 'b' is .* sorted: .*make all its values text"),
        (np.full((800, 1), b"a"), TypeError, "X: column 0 holds values that are neither numbers nor text: encode them"),
        (frame.assign(b=[[1, 2]] * 800), TypeError, "X: column 'b' holds values that are neither"),
    ):
        with pytest.raises(error, match=sentence):
            CBPE().fit(y_score=score, y_true=y_true, X=X)


@pytest.mark.filterwarnings("ignore:there are no alert limits:UserWarning")
@pytest.mark.parametrize("X", [pl.DataFrame({"day": [date(2024, 2, 29)]}), np.array([["2024-02-29"]], dtype="M8[D]")])
def test_dates_in_X_are_invalid(X):
    score, y_true = drawn(200)
    cbpe = CBPE().fit(y_score=score, y_true=y_true, X=np.zeros((200, 1)), chunks=ONE)
    sentence = (
        "^X: column (0|'day') holds dates or durations: leave dates out, because they suffice to tell new samples"
    )
    for attempt in (lambda: CBPE().fit(y_score=[0.5], y_true=[1], X=X), lambda: cbpe.estimate([0.5], X=X)):
        with pytest.raises(TypeError, match=sentence):
            attempt()


@pytest.mark.parametrize("form", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_column_names_are_checked_as_by_the_forest(form):
    """Columns in another order or with other names raise the same errors as in the forest."""
    score, y_true = drawn(300)
    frame = pd.DataFrame({name: score + more for more, name in enumerate("abc")})
    forest = AUCForestClassifier(1, max_depth=1, random_state=0).fit(form(frame), y_true)
    cbpe = CBPE().fit(y_true=y_true, y_score=score, X=form(frame), chunks=THREE)
    assert cbpe.feature_names_in_.tolist() == ["a", "b", "c"]
    for new in (frame[["c", "b", "a"]], frame.rename(columns={"a": "z"}), frame[["a", "b"]]):
        with pytest.raises(ValueError, match="feature names should match") as refused:
            forest.predict_proba(form(new))
        with pytest.raises(ValueError, match=f"^{re.escape(str(refused.value))}$"):
            cbpe.estimate(score, X=form(new))
    assert only(cbpe.estimate(score, X=form(frame), chunks=ONE)).alert is False


def test_column_names_in_only_one_of_fit_and_estimate():
    score, y_true = drawn(300)
    X, rows = np.column_stack([score, score + 1]), {"y_true": y_true, "y_score": score, "chunks": THREE}
    frame = pd.DataFrame(X, columns=["a", "b"])
    for fitted, new, sentence in [
        (X, frame, "X has feature names, but CBPE was fitted without feature names"),
        (frame, X, "X does not have valid feature names, but CBPE was fitted with feature names"),
    ]:
        cbpe = CBPE().fit(X=fitted, **rows)
        with pytest.warns(UserWarning, match=sentence):
            result = cbpe.estimate(score, X=new, chunks=ONE)
        assert only(result).alert is False
    assert not hasattr(cbpe.fit(**rows), "feature_names_in_")
    with pytest.raises(ValueError, match="X has 2 columns named 'a': column names must be unique"):
        cbpe.fit(X=frame.set_axis(["a", "a"], axis=1), **rows)
    with pytest.raises(ValueError, match="X has 3 features, but CBPE is expecting 2 features as input"):
        CBPE().fit(X=X, **rows).estimate(score[:1], X=csr_matrix((1, 3)))


def test_columns_of_text_and_of_numbers_are_different():
    score, y_true = drawn(300)
    of_text = pd.DataFrame({"zip": np.where(score > 0.3, "100", "200")})
    for fitted, new, sentence in [
        (of_text, of_text.astype(int), "X: column 'zip' has values such as 100, but had values such as '100' in fit"),
        (of_text.astype(int), of_text.replace("100", "A1"), "X: column 'zip' holds text, but numbers in the reference"),
    ]:
        cbpe = CBPE().fit(y_true=y_true, y_score=score, X=fitted, chunks=THREE)
        with pytest.raises((TypeError, ValueError), match=sentence):
            cbpe.estimate(score, X=new)
