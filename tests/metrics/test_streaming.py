import pickle
import tracemalloc
import zlib
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from sklearn.exceptions import UndefinedMetricWarning

from aucforest.metrics import AUCReservoir, AUCSketch, delong_covariance, roc_auc_score, roc_curve
from aucforest.metrics.streaming import HEADER, MAGIC
from tests.metrics.strategies import random_rows, two_classes
from tests.reference import metrics as reference

GRIDS = [{}, {"bits": 8}, {"bits": 10, "range": (-2.0, 2.0)}, {"bits": 20}, {"bits": 4}]
# the quotients of the exact integer sums are rounded once each
ROUNDING = 1e-15

grids = st.sampled_from(GRIDS[:3])


def sketch_of(rows, weighted=True, **grid):
    """Return a sketch of (is_positive, scores, weights)."""
    positive, scores, weights = rows
    sketch = AUCSketch(**grid)
    if len(scores):
        sketch.update(positive, scores, weights if weighted else None)
    return sketch


@given(two_classes(), grids)
def test_the_error_is_never_above_the_bound(rows, grid):
    positive, scores, weights = rows
    for weighted, sample_weight in ((False, None), (True, weights)):
        sketch = sketch_of(rows, weighted, **grid)
        error = abs(sketch.score() - reference.auc(positive, scores, sample_weight))
        assert error <= sketch.error_bound() + ROUNDING


@given(two_classes(), st.integers(0, 2**32))
def test_rounded_weights_are_in_the_bound(rows, seed):
    positive, scores, _ = rows
    # more than half a unit each, so that no class vanishes
    weights = 1e-6 + 1e-5 * np.random.default_rng(seed).exponential(size=len(scores))
    sketch = sketch_of((positive, np.sign(scores), weights))
    bound = sketch.error_bound()
    assert abs(sketch.score() - reference.auc(positive, np.sign(scores), weights)) <= bound + ROUNDING


def test_weights_go_to_the_nearest_multiple():
    sketch = AUCSketch()
    sketch.update([0, 0, 0, 1], [1, 3, 3, 2], np.array([0.75, 1.25, 2.75, 5.0]) * 2.0**-20)
    assert sketch.score() == 1 / (1 + 1 + 3)


def test_weights_that_vanish_make_the_bound_useless_rather_than_wrong():
    sketch = AUCSketch()
    sketch.update([0, 0, 0, 1], [1, 2, 3, 2.5], [1e-9, 1e-9, 1e-6, 1.0])
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
    for sample_weight in (None, weights):
        sketch = AUCSketch(**grid)
        for rows in np.array_split(np.arange(50_000), 7):
            sketch.update(positive[rows], scores[rows], None if sample_weight is None else sample_weight[rows])
        exact = roc_auc_score(positive, scores, sample_weight=sample_weight)
        assert abs(sketch.score() - exact) <= sketch.error_bound() + ROUNDING
        fpr, tpr, _ = sketch.roc_curve()
        assert np.trapezoid(tpr, fpr) == pytest.approx(sketch.score(), abs=1e-12)
    assert AUCSketch(**grid).merge(sketch).to_bytes() == sketch.to_bytes()


def test_bound_of_the_default_grid():
    positive, scores, _ = random_rows(100_000)
    assert sketch_of((positive, scores, None), weighted=False).error_bound() < 1.5e-4


@pytest.mark.parametrize("bits", [24, 18])
def test_curve_is_exact_where_bins_tell_scores_apart(bits):
    positive, scores, _ = random_rows(500, levels=8)
    scores += 8.0  # eighths above zero are lower edges of bins
    sketch = sketch_of((positive, scores, None), weighted=False, bits=bits)
    expected = roc_curve(positive, scores, drop_intermediate=False)
    for ours, theirs in zip(sketch.roc_curve(), expected):
        np.testing.assert_allclose(ours, theirs, rtol=1e-15)
    assert sketch.error_bound() > 0.0  # of ties, which is what the bound cannot tell from lost order
    assert sketch.score() == roc_auc_score(positive, scores)


def test_thresholds_of_a_uniform_grid():
    sketch = AUCSketch(bits=4, range=(0, 16))
    sketch.update([0, 1, 0, 1], [-3.0, 2.5, 15.9, 99.0])
    fpr, tpr, thresholds = sketch.roc_curve()
    assert thresholds.tolist() == [np.inf, 15.0, 2.0, 0.0]
    assert (fpr.tolist(), tpr.tolist()) == ([0, 0.5, 0.5, 1], [0, 0.5, 1, 1])


def test_scores_beyond_float32_keep_their_order():
    sketch = AUCSketch()
    sketch.update([0, 0, 1, 1], [-1e300, 1e-300, 1e30, 1e300])
    assert (sketch.score(), sketch.error_bound()) == (1.0, 0.0)
    assert sketch.roc_curve()[2].tolist()[:2] == [np.inf, np.inf]
    assert sketch.roc_curve()[2][-1] == -np.inf


def test_zero_has_one_sign():
    sketch = AUCSketch()
    sketch.update([0, 1], [0.0, -0.0])
    assert sketch.score() == 0.5


@pytest.mark.parametrize("labels", [[True, False], [1, 0], [1, -1], [1.0, 0.0]])
def test_labels_of_a_stream(labels):
    sketch = AUCSketch()
    sketch.update(labels, [2, 1])
    for label, score in zip(labels, (4, 3)):
        sketch.update([label], [score])
    assert sketch.score() == 0.75


@pytest.mark.parametrize("labels", [[1, 2], [0, -1], ["a", "b"], [2, 2], [0.0, np.nan], [1, None]])
def test_other_labels_are_refused(labels):
    sketch = AUCSketch()
    with pytest.raises(ValueError, match="y_true must be bool, 0 and 1, or -1 and 1"):
        sketch.update(labels, [1, 2])
    assert sketch.to_bytes() == AUCSketch().to_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [1, np.nan]), "y_score must be finite, but value 1 is nan"),
        (([0, 1], [-np.inf, 1]), "y_score must be finite"),
        (([0, 1], [1, 2], [1, -1]), "must not be negative"),
        (([0, 1], [1, 2], [1, 2.0**42]), "must be less than"),
        (([], []), "y_score is empty"),
        (([0, 1, 1], [1, 2]), "y_true has 3 samples"),
    ],
)
def test_a_refused_batch_changes_nothing(arguments, message):
    sketch = AUCSketch()
    sketch.update([0, 1], [1, 2], [0.1, 0.2])
    before = sketch.to_bytes()
    with pytest.raises(ValueError, match=message):
        sketch.update(*arguments)
    assert sketch.to_bytes() == before


def test_weights_must_not_overflow_over_time():
    sketch = AUCSketch()
    sketch.update([0, 1], [1, 2], [2.0**41, 1.0])
    with pytest.raises(ValueError, match="must be less than"):
        sketch.merge(sketch)
    with pytest.raises(ValueError, match="must be less than"):
        AUCSketch.from_bytes(sketch.to_bytes()).update([0], [1], [2.0**41])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 3}, "bits must be from 4 to 24, but is 3"),
        ({"bits": 25}, "bits must be"),
        ({"range": (1, 1)}, "range must be two finite bounds"),
        ({"range": (0, np.inf)}, "range must be"),
        ({"range": (0, 1, 2)}, "range must be"),
        ({"range": (np.nan, 1)}, "range must be"),
        ({"range": (-1.7e308, 1.7e308)}, "range must be"),
        ({"range": (0, 5e-324)}, "range must be"),
    ],
)
def test_bad_grid(options, message):
    with pytest.raises(ValueError, match=message):
        AUCSketch(**options)


@pytest.mark.parametrize("other", [{"bits": 17}, {"range": (0, 1)}, {"bits": 18, "range": (0, 2)}])
def test_different_grids_do_not_merge(other):
    with pytest.raises(ValueError, match="grids differ"):
        AUCSketch().merge(AUCSketch(**other))


@pytest.mark.parametrize("y_true", [[], [1], [0]])
def test_one_class_is_undefined(y_true):
    sketch = AUCSketch()
    if y_true:
        sketch.update(y_true, [0.5])
    with pytest.warns(UndefinedMetricWarning, match="a class has no weight") as caught:
        assert np.isnan(sketch.score())
    assert caught[0].filename == __file__
    with pytest.warns(UndefinedMetricWarning, match="a class has no weight") as caught:
        fpr, tpr, _ = sketch.roc_curve()
    assert caught[0].filename == __file__
    assert (np.isnan(fpr).all(), np.isnan(tpr).all()) == (0 not in y_true, 1 not in y_true)
    assert np.isnan(sketch.error_bound())


@pytest.mark.parametrize("grid", GRIDS)
def test_bytes_and_pickle_bring_it_back(grid):
    sketch = sketch_of(random_rows(1000), **grid)
    for copy in (AUCSketch.from_bytes(sketch.to_bytes()), pickle.loads(pickle.dumps(sketch))):
        assert copy.to_bytes() == sketch.to_bytes()
        assert copy.merge(sketch).score() == sketch.score()
        assert copy.error_bound() == sketch.error_bound()


@pytest.mark.parametrize("damage", ["short", "magic", "bits", "body", "empty", "many_bits"])
def test_damaged_bytes(damage):
    data = bytearray(sketch_of(random_rows(10)).to_bytes())
    if damage == "magic":
        data[0] ^= 1
    elif damage == "bits":
        data[8] ^= 1
    elif damage == "many_bits":
        data[8] = 200
    elif damage == "body":
        data[-1] ^= 1
    with pytest.raises(ValueError, match="are not an AUCSketch"):
        AUCSketch.from_bytes({"short": bytes(data[:60]), "empty": b""}.get(damage, bytes(data)))


def packed(bits=4, has_range=False, low=0.0, high=0.0, rounded=(0, 0), counts=(0,) * 32):
    """Return well-formed bytes of anything."""
    header = HEADER.pack(bits, has_range, low, high, *rounded)
    return MAGIC + zlib.compress(header + np.array(counts, "<i8").tobytes())


def test_no_changed_byte_goes_unseen():
    data = sketch_of(random_rows(100), bits=4, range=(-2, 2)).to_bytes()
    assert AUCSketch.from_bytes(data).to_bytes() == data
    accepted = 0
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        with suppress(ValueError):
            assert AUCSketch.from_bytes(bytes(changed)).to_bytes() == data
            accepted += 1
    assert accepted <= 1  # the bits that fill up the last byte of the stream mean nothing
    for wrong in (data + b"!", data[:-1], data[: len(MAGIC)]):
        with pytest.raises(ValueError, match="are not an AUCSketch"):
            AUCSketch.from_bytes(wrong)


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        (packed(bits=3), "bits must be"),
        (packed(bits=200), "bits must be"),
        (packed(bits=5), "do not fill a grid of 5 bits"),
        (packed(counts=[0] * 33), "do not fill a grid of 4 bits"),
        (packed(counts=[0] * (1 << 23)), "do not fill a grid of 4 bits"),
        (packed(has_range=True, low=np.nan, high=1.0), "range must be"),
        (packed(has_range=True, low=-1.7e308, high=1.7e308), "range must be"),
        (packed(has_range=True, high=5e-324), "range must be"),
        (packed(counts=[-1] + [0] * 31), "out of range"),
        (packed(counts=[2**62] * 32), "out of range"),
        (packed(rounded=(0, -1)), "out of range"),
        (packed(rounded=(2**63 - 1, 0)), "out of range"),
    ],
)
def test_forged_bytes(forged, message):
    assert AUCSketch.from_bytes(packed()).to_bytes() == AUCSketch(bits=4).to_bytes()
    with pytest.raises(ValueError, match=f"are not an AUCSketch: .*{message}"):
        AUCSketch.from_bytes(forged)


def test_a_little_data_cannot_fill_the_memory():
    bomb = packed(counts=np.zeros(1 << 22))
    assert len(bomb) < 1 << 16
    tracemalloc.start()
    with pytest.raises(ValueError, match="are not an AUCSketch"):
        AUCSketch.from_bytes(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_all_rows_while_they_fit():
    positive, scores, _ = random_rows(300)
    reservoir = AUCReservoir(300, random_state=0)
    reservoir.update(positive, scores)
    assert reservoir.score() == roc_auc_score(positive, scores)
    assert reservoir.stderr() == pytest.approx(np.sqrt(delong_covariance(positive, scores)[1][0, 0]), rel=1e-12)


@given(st.lists(st.integers(0, 400), max_size=6), st.integers(0, 100))
def test_batches_do_not_matter(cuts, seed):
    positive, scores, _ = random_rows(400)
    whole, parts = AUCReservoir(20, random_state=seed), AUCReservoir(20, random_state=seed)
    whole.update(positive, scores)
    for rows in np.split(np.arange(400), sorted(cuts)):
        if rows.size:
            parts.update(positive[rows], scores[rows])
    assert parts.score() == whole.score()


def test_every_row_stays_with_the_same_chance():
    # 4000 runs over 10 rows into 3 places: each row is kept 1200 times, standard deviation 29
    kept = np.zeros(10)
    for seed in range(4000):
        reservoir = AUCReservoir(3, random_state=seed)
        reservoir.update(np.ones(10, bool), np.arange(10.0))
        kept[reservoir._kept[1].astype(int)] += 1
    assert kept.sum() == 12_000
    assert np.abs(kept - 1200).max() < 4.5 * 29


def drifting_stream(rng, n_batches=20, n_rows=100):
    """Yield batches of rare positives that the scores tell apart less and less."""
    for batch in range(n_batches):
        positive = rng.random(n_rows) < 0.2
        yield positive, rng.normal(size=n_rows) + positive * 3.0 * (1 - batch / n_batches)


def shared_count_auc(stream, size, rng):
    """Return the AUC of the classic mistake: one count for both classes decides about replacing a row."""
    kept, seen = ([], []), 0
    for positive, scores in stream:
        for label, score in zip(positive, scores):
            seen += 1
            sample = kept[int(label)]
            if len(sample) < size:
                sample.append(score)
            elif (slot := rng.integers(seen)) < size:
                sample[slot] = score
    return roc_auc_score(np.repeat([0, 1], [len(kept[0]), len(kept[1])]), np.concatenate(kept))


def test_unbiased_under_drift():
    errors, classic_errors = [], []
    for seed in range(60):
        stream = list(drifting_stream(np.random.default_rng(seed)))
        exact = roc_auc_score(*map(np.concatenate, zip(*stream)))
        reservoir = AUCReservoir(100, random_state=seed)
        for batch in stream:
            reservoir.update(*batch)
        errors.append(reservoir.score() - exact)
        if seed < 15:
            classic_errors.append(shared_count_auc(stream, 100, np.random.default_rng(seed)) - exact)
    standard_error = np.std(errors) / np.sqrt(60)
    assert abs(np.mean(errors)) < 3.5 * standard_error < 0.02
    assert np.mean(classic_errors) > 0.06  # the stream does tell the two apart


def test_standard_error_is_the_spread_of_the_score():
    scores, errors = [], []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        positive = np.repeat([True, False], 500)
        reservoir = AUCReservoir(50, random_state=seed)
        reservoir.update(positive, rng.normal(size=1000) + positive)
        scores.append(reservoir.score())
        errors.append(reservoir.stderr())
    # a standard deviation of 300 values is good to 4 %, three times that
    assert np.mean(errors) == pytest.approx(np.std(scores), rel=0.13)
    assert np.mean(scores) == pytest.approx(ndtr(np.sqrt(0.5)), abs=0.01)


@pytest.mark.parametrize("rows", [([], []), ([0], [1.0]), ([1, 1], [1.0, 2.0])])
def test_without_both_classes(rows):
    reservoir = AUCReservoir(5, random_state=0)
    if len(rows[0]):
        reservoir.update(*rows)
    with pytest.warns(UndefinedMetricWarning, match="a class has no samples") as caught:
        assert np.isnan(reservoir.score())
    assert caught[0].filename == __file__
    with pytest.warns(UndefinedMetricWarning, match="fewer than two samples"):
        assert np.isnan(reservoir.stderr())


def test_bad_input():
    with pytest.raises(ValueError, match="size must be at least 2, but is 1"):
        AUCReservoir(1)
    with pytest.raises(TypeError, match="float"):
        AUCReservoir(2.5)
    reservoir = AUCReservoir(2, random_state=0)
    for arguments in (([0, 2], [1, 2]), ([0, 1], [1, np.nan]), ([], [])):
        with pytest.raises(ValueError, match=r"y_true must be bool|y_score"):
            reservoir.update(*arguments)
    assert reservoir._seen == [0, 0]
