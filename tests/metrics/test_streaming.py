import pickle
import struct
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.metrics import AUCSketch, roc_auc_score, roc_curve
from aucforest.metrics.streaming import HEADER, MAGIC
from tests.memory import peak_below
from tests.metrics.strategies import random_rows, two_classes
from tests.reference import metrics as reference

GRIDS = [{}, {"bits": 8}, {"bits": 20}, {"bits": 4}]
ROUNDING = 1e-15  # Each quotient of exact integer sums is rounded once.

grids = st.sampled_from(GRIDS[:2])


def sketch_of(rows, **grid):
    sketch = AUCSketch(**grid)
    sketch.update(*rows)
    return sketch


@given(two_classes(), grids, st.integers(0, 2**32))
def test_the_error_is_never_above_the_bound(rows, grid, seed):
    positive, scores, weights = rows
    # The last weights are rounded. Each is more than half a unit, so that no class loses its weight.
    small = 1e-6 + 1e-5 * np.random.default_rng(seed).exponential(size=len(scores))
    for values, weight in ((scores, None), (scores, weights), (np.sign(scores), small)):
        sketch = sketch_of((positive, values, weight), **grid)
        assert abs(sketch.score() - reference.auc(positive, values, weight)) <= sketch.error_bound() + ROUNDING


def test_weights_are_rounded_to_multiples():
    sketch = sketch_of(([0, 0, 0, 1], [1, 3, 3, 2], np.array([0.75, 1.25, 2.75, 5.0]) * 2.0**-20))
    assert sketch.score() == 1 / (1 + 1 + 3)
    sketch = sketch_of(([0, 0, 0, 1], [1, 2, 3, 2.5], [1e-9, 1e-9, 1e-6, 1.0]))  # two weights are rounded to 0
    assert sketch.error_bound() >= 1.0


@settings(max_examples=15)
@given(two_classes(), two_classes(), two_classes(), grids)
def test_merging_is_associative_and_commutative(first, second, third, grid):
    a, b, c = (sketch_of(rows, **grid) for rows in (first, second, third))
    whole = sketch_of([np.concatenate(parts) for parts in zip(first, second, third)], **grid).to_bytes()
    assert a.merge(b.merge(c)).to_bytes() == whole
    assert c.merge(a).merge(b).to_bytes() == whole
    assert a.merge(AUCSketch(**grid)).to_bytes() == a.to_bytes() == sketch_of(first, **grid).to_bytes()


@pytest.mark.parametrize("grid", GRIDS)
def test_many_rows(grid):
    positive, scores, weights = random_rows(50_000, dtype=np.float32)
    for weight in (np.ones(50_000), weights):
        sketch = AUCSketch(**grid)
        for rows in np.array_split(np.arange(50_000), 7):
            sketch.update(positive[rows], scores[rows], weight[rows])
        exact = roc_auc_score(positive, scores, sample_weight=weight)
        assert abs(sketch.score() - exact) <= sketch.error_bound() + ROUNDING
        fpr, tpr, _ = sketch.roc_curve()
        assert np.trapezoid(tpr, fpr) == pytest.approx(sketch.score(), abs=1e-12)
        assert grid or sketch.error_bound() < 1.5e-4


def test_curve_is_exact_where_bins_tell_scores_apart():
    positive, scores, _ = random_rows(500, levels=8)
    scores += 8.0  # eighths above zero are lower edges of bins
    sketch, expected = sketch_of((positive, scores)), roc_curve(positive, scores, drop_intermediate=False)
    np.testing.assert_allclose(sketch.roc_curve(), expected, rtol=1e-15)
    assert sketch.error_bound() > 0.0  # because the bound does not distinguish ties from scores in the same bin
    assert sketch.score() == roc_auc_score(positive, scores)


def test_scores_beyond_float32_keep_their_order_and_zeros_are_equal():
    sketch = sketch_of(([0, 0, 1, 1], [-1e300, 1e-300, 1e30, 1e300]))
    assert (sketch.score(), sketch.error_bound()) == (1.0, 0.0)
    assert sketch.roc_curve()[2][[0, 1, -1]].tolist() == [np.inf, np.inf, -np.inf]
    assert sketch_of(([0, 1], [0.0, -0.0])).score() == 0.5


@pytest.mark.parametrize("labels", [[True, False], [1, 0], [1, -1], [1.0, 0.0]])
def test_labels_of_a_stream(labels):
    sketch = sketch_of((labels, [2, 1]))
    for label, score in zip(labels, (4, 3)):
        sketch.update([label], [score])
    assert sketch.score() == 0.75


@pytest.mark.parametrize(("arguments", "message"), [
    *(
        ((labels, [1, 2]), "y_true must be bool, 0 and 1, or -1 and 1")
        for labels in ([1, 2], [0, -1], ["a", "b"], [2, 2], [0.0, np.nan], [1, None])
    ),
    (([0, 1], [1, np.nan]), "y_score must be finite, but value 1 is nan"), (([], []), "y_score is empty"),
    (([0, 1], [-np.inf, 1]), "y_score must be finite"), (([0, 1], [1, 2], [1, -1]), "must not be negative"),
    (([0, 1], [1, 2], [1, 2.0**42]), "must be less than"), (([0, 1, 1], [1, 2]), "y_true has 3 samples"),
])  # fmt: skip
def test_an_invalid_batch_changes_nothing(arguments, message):
    sketch = sketch_of(([0, 1], [1, 2], [0.1, 0.2]))
    before = sketch.to_bytes()
    with pytest.raises(ValueError, match=message):
        sketch.update(*arguments)
    assert sketch.to_bytes() == before


def test_weights_must_not_overflow_over_time_and_grids_not_differ():
    heavy = sketch_of(([0, 1], [1, 2], [2.0**41, 1.0]))
    for call, message in (
        (lambda: heavy.merge(heavy), "must be less than"),
        (lambda: AUCSketch.from_bytes(heavy.to_bytes()).update([0], [1], [2.0**41]), "must be less than"),
        (lambda: AUCSketch(bits=3), "bits == 3, must be >= 4"),
        (lambda: AUCSketch(bits=25), "bits == 25, must be <= 24"),
        (lambda: heavy.merge(AUCSketch(bits=17)), "grids differ: they have 18 and 17 bits"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="bits must be an instance of"):
        AUCSketch(bits=18.5)


@pytest.mark.parametrize("y_true", [[], [1], [0]])
def test_one_class_is_undefined(y_true):
    sketch = sketch_of((y_true, [0.5])) if y_true else AUCSketch()
    with pytest.warns(UndefinedMetricWarning, match="a class has no weight"):
        assert np.isnan(sketch.score())
    with pytest.warns(UndefinedMetricWarning, match="a class has no weight"):
        fpr, tpr, _ = sketch.roc_curve()
    assert (np.isnan(fpr).all(), np.isnan(tpr).all()) == (0 not in y_true, 1 not in y_true)
    assert np.isnan(sketch.error_bound())


@pytest.mark.parametrize("grid", GRIDS)
def test_sketches_are_restored_from_bytes_and_pickle(grid):
    sketch = sketch_of(random_rows(1000), **grid)
    for copy in (AUCSketch.from_bytes(sketch.to_bytes()), pickle.loads(pickle.dumps(sketch))):
        assert copy.to_bytes() == sketch.to_bytes()
        assert (copy.merge(sketch).score(), copy.error_bound()) == (sketch.score(), sketch.error_bound())


def packed(bits=4, bounds=b"", rounded=(0, 0), counts=(0,) * 32):
    """Return bytes with a valid checksum but any content."""
    return MAGIC + zlib.compress(HEADER.pack(bits, bounds, *rounded) + np.array(counts, "<i8").tobytes())


def test_changed_bytes_are_invalid():
    data, accepted = sketch_of(random_rows(100), bits=4).to_bytes(), 0
    for index in range(len(data)):
        changed = bytearray(data)
        changed[index] ^= 1
        with suppress(ValueError):
            assert AUCSketch.from_bytes(bytes(changed)).to_bytes() == data
            accepted += 1
    assert accepted <= 1  # Unused bits of the last byte of the stream have no meaning.
    for wrong in (b"", data + b"!", data[:-1], data[: len(MAGIC)]):
        with pytest.raises(ValueError, match="are not an AUCSketch"):
            AUCSketch.from_bytes(wrong)


@pytest.mark.parametrize(("forged", "message"), [
    (packed(bits=3), "bits == 3"), (packed(bits=5), "do not fill a grid of 5 bits"),
    (packed(counts=[0] * 33), "do not fill a grid of 4 bits"),
    (packed(bounds=struct.pack("<?dd", True, -2.0, 2.0)), "a grid with bounds"),
    (packed(counts=[-1] + [0] * 31), "out of range"), (packed(counts=[2**62] * 32), "out of range"),
    (packed(rounded=(0, -1)), "out of range"), (packed(rounded=(2**63 - 1, 0)), "out of range"),
])  # fmt: skip
def test_invalid_bytes(forged, message):
    assert AUCSketch.from_bytes(packed()).to_bytes() == AUCSketch(bits=4).to_bytes()
    with pytest.raises(ValueError, match=f"are not an AUCSketch: .*{message}"):
        AUCSketch.from_bytes(forged)


def test_compressed_bytes_cannot_fill_the_memory():
    bomb = packed(counts=np.zeros(1 << 22))
    assert len(bomb) < 1 << 16
    with peak_below(1 << 20), pytest.raises(ValueError, match="are not an AUCSketch"):
        AUCSketch.from_bytes(bomb)
