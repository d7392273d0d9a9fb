"""A metric of expected labels, how much each row's label moves it, and the noise that follows from that.

Labels are columns: p[i, c] is the chance that row i is of class c. Two classes need one column, that of the positive
class; more classes have a column each. An influence h[i, c] is the derivative of the metric by p[i, c], and since the
labels of different rows are independent the variance of the realised metric is

    sum_i ( sum_c p h^2 - (sum_c p h)^2 )            which for one column is sum_i p (1 - p) h^2
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.monitoring._ranked import FloatArray, RankedColumn, dot


class Rows(NamedTuple):
    """Rows whose metrics are wanted.

    Attributes
    ----------
    columns : list of RankedColumn
        The ranking scores, as many as `p` has columns.
    p : ndarray of shape (n, n_columns)
        Chances of the classes; zeros and ones where the labels are known.
    predicted : ndarray of shape (n,) or None
        Codes of the predicted classes.
    """

    columns: list[RankedColumn]
    p: FloatArray
    predicted: NDArray[np.uint32] | None = None

    @property
    def class_columns(self) -> FloatArray:
        """The chances of all classes, (n, n_classes)."""
        return np.hstack([1.0 - self.p, self.p]) if self.p.shape[1] == 1 else self.p

    def by_column(self) -> list["Rows"]:
        """Return the rows of every column by itself: one class against the others."""
        return [Rows([column], self.p[:, k : k + 1]) for k, column in enumerate(self.columns)]


class Estimate(NamedTuple):
    """The metric with p in place of labels (`value`), its expectation (`expected`) and the influence of the labels."""

    value: float
    expected: float
    influence: FloatArray


def label_variance(p: FloatArray, influence: FloatArray) -> float:
    """Return the variance of a sum of independent labels, each weighed by its influence."""
    product = p * influence
    within = product if p.shape[1] == 1 else product.sum(axis=1)
    return max(0.0, dot(product, influence) - dot(within, within))


def undefined(p: FloatArray) -> Estimate:
    """Return the estimate of a metric that these rows do not define."""
    return Estimate(np.nan, np.nan, np.full_like(p, np.nan))
