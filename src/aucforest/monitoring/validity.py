"""Limits of the shift of a chunk, beyond which its estimates may not be valid.

Each full chunk of the reference is compared with the rest of the reference, as a new chunk is with the whole. Without a
shift the PSI and the squared coefficient of variation of density ratios, 1 / effective sample size - 1, are nearly
proportional to 1 / n0 + 1 / n1 with n0 reference and n1 new samples, and the domain AUC minus 1/2 to its root.
The cube root of such a ratio is about normal (Wilson and Hilferty, Proceedings of the National Academy of Sciences 17,
1931). A new chunk is compared with the prediction limit of these values, which takes into account how few they are.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, t

from aucforest.monitoring._rows import FloatArray
from aucforest.monitoring.metrics import is_beyond
from aucforest.monitoring.shift import ShiftReport

# The fewest full reference chunks with limits: of two, both are compared with the other one, which is one comparison.
LEAST_CHUNKS = 3
MOST_CHUNKS = 20  # the maximum number of reference chunks compared, since each takes a domain classifier


class Measured(NamedTuple):
    """A shift report, the numbers of reference and new samples that it is based on, and the greatest possible PSI."""

    report: ShiftReport
    n_reference: int
    n_new: int
    greatest_psi: float = np.inf

    @property
    def _scales(self) -> tuple[float, float]:
        """1 / n0 + 1 / n1 of the samples whose scores, and of those whose features are compared."""
        return 1.0 / self.n_reference + 1.0 / self.n_new, 12.0 * self.report.domain_auc_error**2

    def standardized(self) -> FloatArray:
        """Return PSI, domain AUC and effective sample size on scales that do not depend on the numbers of samples."""
        of_scores, of_features = self._scales
        report = self.report
        auc = (report.domain_auc - 0.5) / report.domain_auc_error
        size = np.cbrt((1.0 / report.effective_sample_size - 1.0) / of_features)
        return np.array([np.cbrt(report.psi / of_scores), auc, size])

    def judged(self, limits: FloatArray) -> ShiftReport:
        """Return the report with limits, which are given standardized, and whether it is within them."""
        of_scores, of_features = self._scales
        report = self.report
        most_psi = float(limits[0] ** 3 * of_scores)
        most_auc = float(np.minimum(0.5 + limits[1] * report.domain_auc_error, 1.0))
        least_size = float(1.0 / (1.0 + limits[2] ** 3 * of_features))
        is_shifted = (
            is_beyond(report.psi, -np.inf, most_psi)
            or is_beyond(report.domain_auc, -np.inf, most_auc)
            or is_beyond(report.effective_sample_size, least_size, np.inf)
        )
        can_be_beyond = most_psi < self.greatest_psi or most_auc < 1.0 or least_size > 1.0 / self.n_reference
        return report._replace(
            psi_limit=most_psi,
            domain_auc_limit=most_auc,
            effective_sample_size_limit=least_size,
            valid=False if is_shifted else True if can_be_beyond else None,
        )


def spread_out(chunks: Sequence[Any]) -> list[Any]:
    """Return all chunks, or MOST_CHUNKS at equal distances if there are more."""
    n_chunks = len(chunks)
    return [chunks[k] for k in np.linspace(0, n_chunks - 1, min(n_chunks, MOST_CHUNKS)).astype(int)]


def prediction_limits(standardized: FloatArray, threshold: float) -> FloatArray:
    """Return the upper limit of each column for a new row: a t quantile of the level of a normal one at `threshold`.

    The level is divided by the number of columns without NaN (Bonferroni). NaN with fewer than LEAST_CHUNKS rows.
    """
    n_rows, n_columns = standardized.shape
    if n_rows < LEAST_CHUNKS:
        return np.full(n_columns, np.nan)
    level = norm.sf(threshold) / max(1, np.count_nonzero(~np.isnan(standardized).any(axis=0)))
    reach = t.isf(level, n_rows - 1) * np.sqrt(1.0 + 1.0 / n_rows)
    return np.asarray(standardized.mean(axis=0) + reach * standardized.std(axis=0, ddof=1))
