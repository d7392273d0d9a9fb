"""Estimates, standard errors and intervals of a chunk."""

import numpy as np
import pytest

from aucforest.monitoring import CBPE, Chunks

ONE = Chunks.by_number(1)


def fitted(metrics, n_reference=600, **options):
    """Return a CBPE with a curve, and scores of new rows."""
    random = np.random.default_rng(0)
    score = random.random(n_reference)
    labels = random.random(n_reference) < score**2
    cbpe = CBPE(metrics, calibration="isotonic", **options).fit(score, labels, score > 0.5)
    return cbpe, random.random(150)


def test_counts_are_shares_times_rows():
    """The reference has four times the rows: what is taken off a count must shrink with it."""
    counts, new = fitted(["confusion_matrix"])
    shares, _ = fitted(["confusion_matrix"], normalize="all")
    rows = zip(*(cbpe.estimate(new, new > 0.45, chunks=ONE).estimates for cbpe in (counts, shares)))
    for count, share in rows:
        assert count[5:9] == pytest.approx(150 * np.array(share[5:9]), abs=1e-9)


def test_drawn_intervals_hold_the_noise_of_the_curve():
    """Labels of average precision are drawn; a small reference must make its intervals wider."""
    widths = []
    for n_reference in (200, 20_000):
        cbpe, _ = fitted(["average_precision"], n_reference, n_draws=2000)
        (row,) = cbpe.estimate(np.linspace(0, 1, 3000), chunks=ONE).estimates
        assert row.high - row.low == pytest.approx(2 * 1.96 * row.standard_error, rel=0.1)
        widths.append(row.high - row.low)
    assert widths[0] > 1.5 * widths[1]


def test_equal_chunks_have_draws_of_their_own():
    cbpe, new = fitted(["average_precision"])
    first, second = cbpe.estimate(np.tile(new, 2), chunks=Chunks.by_size(150)).estimates
    assert first.low != second.low
    again, _ = cbpe.estimate(np.tile(new, 2), chunks=Chunks.by_size(150)).estimates
    assert again[5:9] == first[5:9]


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_the_level_sets_the_width(level):
    cbpe, new = fitted(["accuracy"], level=level)
    (row,) = cbpe.estimate(new, new > 0.5, chunks=ONE).estimates
    z = {0.5: 0.6745, 0.9: 1.6449, 0.99: 2.5758}[level]
    assert row.high - row.low == pytest.approx(2 * z * row.standard_error, rel=1e-4)
    assert (row.high + row.low) / 2 == pytest.approx(row.estimate)
