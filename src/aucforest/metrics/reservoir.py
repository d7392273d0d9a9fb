"""AUC of data that is never in memory at once: a uniform sample of each class."""

from operator import index
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aucforest.metrics._validation import stream_rows, warn_undefined
from aucforest.metrics.confidence import delong_covariance
from aucforest.metrics.roc import roc_auc_score


class AUCReservoir:
    """AUC of a stream from a uniform sample of each class, with a standard error.

    Algorithm R [1]_ run for each class with its own count: after n rows of a class each of them is in the
    sample with chance size / n, whatever the classes' shares do over time.

    Parameters
    ----------
    size : int, at least 2
        Rows kept of each class.
    random_state : int, numpy.random.Generator or None
        Seed. The sample does not depend on how the stream was cut into batches.

    Raises
    ------
    ValueError
        For a `size` under 2.

    References
    ----------
    .. [1] J. S. Vitter, "Random sampling with a reservoir", ACM Transactions on Mathematical Software 11
       (1985), 37-57.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.metrics import AUCReservoir
    >>> rng = np.random.default_rng(0)
    >>> reservoir = AUCReservoir(size=1000, random_state=0)
    >>> for _ in range(20):
    ...     y_true = rng.integers(0, 2, 5000)
    ...     reservoir.update(y_true, rng.normal(size=5000) + y_true)
    >>> abs(reservoir.score() - 0.7602) < 3 * reservoir.stderr()
    True
    """

    def __init__(self, size: int, random_state: int | np.random.Generator | None = None) -> None:
        self.size = index(size)
        if self.size < 2:
            raise ValueError(f"size must be at least 2, but is {size}")
        self._generators = np.random.default_rng(random_state).spawn(2)
        self._kept = np.empty((2, self.size))
        self._seen = [0, 0]

    def update(self, y_true: ArrayLike, y_score: ArrayLike) -> None:
        """Offer a batch of rows.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels: bool, 0 and 1, or -1 and 1; one class may be absent from a batch.
        y_score : array-like of shape (n_samples,)
            Scores, finite.

        Raises
        ------
        ValueError
            For other labels, scores that are not finite, an empty batch or lengths that differ.
        TypeError
            For scores that are not real numbers.
        """
        positive, scores = stream_rows(y_true, y_score)
        self._offer(0, scores[~positive])
        self._offer(1, scores[positive])

    def _offer(self, label: Literal[0, 1], scores: NDArray[np.floating[Any]]) -> None:
        """Run Algorithm R over more rows of one class."""
        seen, kept = self._seen[label], self._kept[label]
        filling = scores[: max(0, self.size - seen)]
        kept[seen : seen + filling.size] = filling
        rest = scores[filling.size :]
        # row number t (from 1) takes a slot with chance size / t; the last row to take a slot stays in it
        numbers = np.arange(seen + filling.size, seen + scores.size) + 1
        slots = self._generators[label].integers(0, numbers)
        taken = slots < self.size
        kept[slots[taken]] = rest[taken]
        self._seen[label] += scores.size

    def _sample(self) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return labels and scores of the sample."""
        counts = [min(seen, self.size) for seen in self._seen]
        scores = np.concatenate([kept[:count] for kept, count in zip(self._kept, counts)])
        return np.repeat([False, True], counts), scores

    def score(self) -> float:
        """Return the AUC of the sample; NaN with an UndefinedMetricWarning without rows of both classes."""
        if min(self._seen) == 0:
            warn_undefined("ROC AUC is not defined: no row of a class was seen")
            return float("nan")
        return float(roc_auc_score(*self._sample()))

    def stderr(self) -> float:
        """Return DeLong's standard error of `score`, as an estimate of what the stream is drawn from.

        NaN with an UndefinedMetricWarning with fewer than two rows of a class.
        """
        if min(self._seen) < 2:
            warn_undefined("the standard error is not defined: fewer than two rows of a class were seen")
            return float("nan")
        _, covariance = delong_covariance(*self._sample())
        return float(np.sqrt(covariance[0, 0]))
