"""Sums of sigmoid-like functions and the squared hinge of score differences over all pairs, in O(n) from sorted rows.

Let x be the difference of two scores divided by eps, and z = exp(-|x|). Each sigmoid-like function is z q(z), plus a
constant, plus a multiple of |x|. A polynomial of 20 terms approximates q on [0, 1] up to rounding (see
docs/mathematics/losses.md). So z q(z) is a sum of multiples of exp(-k |x|). For each k, exp(-k |x|) is a product of two
factors, one for each row of the pair: exponentials of the distances of the rows from an anchor. So the sum over the
pairs of a row with previous rows is the factor of the row, multiplied by the sum of the factors of the previous rows (a
moment).

    scores, ascending   o   o  o      o | o  o     a new anchor is set after a distance of eps, so that
                        '----- eps -----' '---     no power of exp(distance) is large

The error of a pair is proportional to its value, so distant pairs add little error. The relative error is below 1e-14
for values and 1e-13 for first derivatives. Second derivatives can be 0; their absolute error is below 5e-13 exp(-|x|).
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from aucforest._compile import device, kernel
from aucforest.metrics.validation import FloatArray

TERMS = 20
LANES = 4  # the number of independent sums and products, which the processor computes in parallel; a divisor of TERMS


def _coefficients(quotient: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Return the coefficients of z, z^2, ... in z q(z), given q."""
    chebyshev = Chebyshev.interpolate(quotient, TERMS - 1, domain=[0.0, 1.0])
    powers = chebyshev.convert(kind=Polynomial, domain=[-1.0, 1.0], window=[-1.0, 1.0])
    return np.asarray(powers.coef, dtype=np.float64)


# For s(x) = sigmoid(-x), these are s, -s', s'' and softplus(-x) at x > 0. No Chebyshev node is at z = 0, where
# log1p(z) / z is not defined.
_SIGMOID = _coefficients(lambda z: 1.0 / (1.0 + z))
_SLOPE = _coefficients(lambda z: 1.0 / (1.0 + z) ** 2)
_BEND = _coefficients(lambda z: (1.0 - z) / (1.0 + z) ** 3)
_SOFTPLUS = _coefficients(lambda z: np.log1p(z) / z)


# For each loss phi(x): the coefficients of |x|, 1, z, z^2, ... in phi, -phi' and phi'', first for x < 0 (a pair in the
# wrong order) and then for x > 0.
TABLES = {
    "sigmoid": np.array([
        [np.r_[0, 1, -_SIGMOID], np.r_[0, 0, _SLOPE], np.r_[0, 0, -_BEND]],
        [np.r_[0, 0, _SIGMOID], np.r_[0, 0, _SLOPE], np.r_[0, 0, _BEND]],
    ]),
    "logistic": np.array([
        [np.r_[1, 0, _SOFTPLUS], np.r_[0, 1, -_SIGMOID], np.r_[0, 0, _SLOPE]],
        [np.r_[0, 0, _SOFTPLUS], np.r_[0, 0, _SIGMOID], np.r_[0, 0, _SLOPE]],
    ]),
}  # fmt: skip


@device
def _set_powers(base, factor, powers):
    """Write factor * base, factor * base^2, ... to `powers`, in independent lanes."""
    power = factor * base
    for k in range(LANES):
        powers[k] = power
        power *= base
    square = base * base
    step = square * square
    for k in range(LANES, TERMS):
        powers[k] = powers[k - LANES] * step


@device
def _move_anchor(distance, lags, totals, moments, powers):
    """Change lags and moments to those for an anchor that is farther by `distance`; overwrite `powers`."""
    _set_powers(math.exp(-distance), 1.0, powers)
    for c in range(2):
        lags[c] += totals[c] * distance
        for k in range(TERMS):
            moments[c, k] *= powers[k]


@device
def _dot(series, terms):
    """Return the sum over k of series[2 + k] * terms[k]."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for k in range(0, TERMS, LANES):
        a += series[2 + k] * terms[k]
        b += series[3 + k] * terms[k + 1]
        c += series[4 + k] * terms[k + 2]
        d += series[5 + k] * terms[k + 3]
    return (a + b) + (c + d)


@kernel
def add_series(scores, weights, starts, scale, table, sums):
    """Add to each row of `sums` the functions of `table`, summed over the pairs of the row.

    Rows are sorted by score within groups. Negative rows have negative weights, or -0.0 for a weight of 0.
    """
    moments = np.empty((2, TERMS))
    rise, fall = np.empty(TERMS), np.empty(TERMS)  # powers of exp(offset) and of exp(-offset)
    totals, lags = np.empty(2), np.empty(2)  # sums over the previous rows: weights, and weights * (anchor - score)
    for direction in (1, -1):  # pairs with rows of lower scores, then pairs with rows of higher scores
        for group in range(starts.size - 1):
            moments[:] = 0.0
            totals[:] = 0.0
            lags[:] = 0.0
            first = starts[group] if direction > 0 else starts[group + 1] - 1
            anchor = scores[first]
            for step in range(starts[group + 1] - starts[group]):
                i = first + direction * step
                offset = abs(scores[i] - anchor) * scale
                if offset > 1.0:
                    _move_anchor(offset, lags, totals, moments, fall)
                    anchor = scores[i]
                    offset = 0.0
                weight = abs(weights[i])
                row_class = np.int64(math.copysign(1.0, weights[i]) > 0.0)
                other_class = 1 - row_class
                up = math.exp(offset)
                _set_powers(up, weight, rise)
                _set_powers(1.0 / up, 1.0, fall)
                # These are two loops, because a loop that writes only one array is vectorized.
                other_moments, row_moments = moments[other_class], moments[row_class]
                for k in range(TERMS):
                    fall[k] *= other_moments[k]
                for k in range(TERMS):
                    row_moments[k] += rise[k]
                # A pair is in the right order if the negative row is below the positive one.
                series = table[row_class if direction > 0 else other_class]
                total = totals[other_class]
                distance = lags[other_class] + total * offset
                for q in range(sums.shape[1]):
                    sums[i, q] += series[q, 0] * distance + series[q, 1] * total + _dot(series[q], fall)
                totals[row_class] += weight
                lags[row_class] -= weight * offset


@kernel
def write_hinge(scores, weights, starts, scale, sums):
    """Write the sums of phi, -phi' and phi'' over the pairs of each row, where phi is the squared hinge.

    Rows are sorted and weighted as for `add_series`. Negative rows are processed in ascending and positive rows in
    descending order. The rows of the other class within the margin are represented by moments of their distances to the
    edge of the margin. These distances only increase, so no digits are lost by subtraction.
    """
    for direction in (1, -1):
        for group in range(starts.size - 1):
            first = starts[group] if direction > 0 else starts[group + 1] - 1
            n_rows = starts[group + 1] - starts[group]
            edge, total, first_moment, second_moment = scores[first], 0.0, 0.0, 0.0
            n_ahead = 0
            for step in range(n_rows):
                i = first + direction * step
                if math.copysign(1.0, weights[i]) == direction:
                    continue
                # `edge` is the score of the previous row of this class. The margin, 1 / scale, is not added to `edge`,
                # because the sum would be rounded.
                distance = abs(scores[i] - edge) * scale
                second_moment += distance * (2.0 * first_moment + distance * total)
                first_moment += distance * total
                edge = scores[i]
                while n_ahead < n_rows:
                    j = first + direction * n_ahead
                    reach = 1.0 - direction * (scores[j] - edge) * scale
                    if reach <= 0.0:
                        break
                    weight = direction * weights[j]
                    if weight > 0.0:  # a row of the other class
                        total += weight
                        first_moment += weight * reach
                        second_moment += weight * reach * reach
                    n_ahead += 1
                sums[i, 0] = second_moment
                sums[i, 1] = 2.0 * first_moment
                sums[i, 2] = 2.0 * total
