"""Weights of rows as integers, whose sums do not depend on the order of rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Sums of fixed-point weights stay below this, products of two class totals of integer weights below its square.
_WEIGHT_BITS = 61
_EXACT_WEIGHT = 2**31
# By so many bits they are less for sums in float64, which are exact then.
_SPARE_BITS = 8


class FixedPoint(NamedTuple):
    """Weights as integers: their sums do not depend on the order of rows.

    grain : float
        Weights are divided by it first, so that weights in the same ratios become the same integers.
    exponent : int
        Then they are multiplied by 2 ** exponent.
    """

    grain: float
    exponent: int

    @classmethod
    def of(cls, weights: NDArray[np.float64], n_draws: int) -> "FixedPoint":
        """Choose the unit of weights, not all 0, of which so many are summed.

        Multiples of one weight become small integers, of which AUC scores are exact: constant weights are ones. Others
        get all the bits that cannot overflow.
        """
        positive = weights[weights > 0]
        least, most = float(positive.min()), float(positive.max())
        for grain in (1.0, least):
            if most / grain * n_draws < _EXACT_WEIGHT and _are_multiples(positive, grain):
                wholes = np.rint(positive / grain).astype(np.int64)
                return cls(grain * float(np.gcd.reduce(wholes)), 0)
        # Exponents instead of logarithms: weights scaled by a power of two become the same integers.
        return cls(1.0, _WEIGHT_BITS - int(np.frexp(most)[1]) - n_draws.bit_length())

    @property
    def unit(self) -> float:
        """What one is worth."""
        return float(np.ldexp(self.grain, -self.exponent))

    def apply(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return weights in units, at least one."""
        return np.maximum(np.rint(np.ldexp(weights / self.grain, self.exponent)), 1.0).astype(np.int64)


def _are_multiples(weights: NDArray[np.float64], grain: float) -> bool:
    """Say whether weights are whole multiples of a number, but for the rounding of a product and a quotient."""
    ratios = weights / grain
    return bool(np.all(np.abs(ratios - np.rint(ratios)) <= 2 * np.finfo(np.float64).eps * ratios))


def exact_weights(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return positive weights in the same ratios whose sums are exact in float64."""
    return FixedPoint.of(weights, len(weights) << _SPARE_BITS).apply(weights).astype(np.float64)
