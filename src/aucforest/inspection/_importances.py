"""The result of a permutation importance: table and picture."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._optional import import_optional

# Half the width of a 95 % interval, in standard errors.
_QUANTILE = 1.96


@dataclass(frozen=True, repr=False, eq=False)
class PermutationImportance:
    """What `oob_permutation_importance` found: how much a score falls when a feature is permuted.

    Attributes
    ----------
    importances : ndarray of shape (n_features, n_repeats), float64
        Score of the data as they are, less that with a feature permuted.
    importances_mean : ndarray of shape (n_features,), float64
        Their means over repeats.
    importances_std : ndarray of shape (n_features,), float64
        Their standard deviations over repeats, as in scikit-learn: what permutations alone make of it.
    importances_stderr : ndarray of shape (n_features,), float64
        Standard errors of the means, for the rows that were scored are a sample too; NaN where a class has fewer
        than two of them.
    baseline_score : float
        Out-of-bag score of the data as they are.
    n_scored : int
        Rows that were scored: those that some tree did not draw.
    scoring : str
        Name of the score.
    feature_names : tuple of str
        Names of the features.
    """

    importances: NDArray[np.float64]
    importances_stderr: NDArray[np.float64]
    baseline_score: float
    n_scored: int
    scoring: str
    feature_names: tuple[str, ...]

    @property
    def importances_mean(self) -> NDArray[np.float64]:
        """Means over repeats."""
        means: NDArray[np.float64] = self.importances.mean(axis=1)
        return means

    @property
    def importances_std(self) -> NDArray[np.float64]:
        """Standard deviations over repeats."""
        deviations: NDArray[np.float64] = self.importances.std(axis=1)
        return deviations

    def _order(self) -> NDArray[np.int64]:
        """Return the features by falling importance."""
        return np.argsort(-self.importances_mean, kind="stable")

    def to_frame(self) -> Any:
        """Return a pandas DataFrame (extra ``frame``): a row for each feature, the most important first."""
        pandas = import_optional("pandas", purpose="to_frame", extra="frame")
        columns = {"mean": self.importances_mean, "stderr": self.importances_stderr, "std": self.importances_std}
        index = pandas.Index(self.feature_names, name="feature")
        return pandas.DataFrame(columns, index=index).iloc[self._order()]

    def plot(self, ax: Any = None, *, max_features: int = 20) -> Any:
        """Draw the importances with their 95 % intervals, the most important on top.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        max_features : int, default=20
            How many features are drawn.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            Without matplotlib (extra ``plot``).
        """
        pyplot = import_optional("matplotlib.pyplot", purpose="plotting", extra="plot")
        chosen = self._order()[:max_features]
        if ax is None:
            ax = pyplot.subplots(figsize=(6.4, 0.9 + 0.3 * len(chosen)), layout="constrained")[1]
        places = np.arange(len(chosen))
        errors = _QUANTILE * self.importances_stderr[chosen]
        ax.errorbar(self.importances_mean[chosen], places, xerr=errors, fmt="o", markersize=5, capsize=2)
        ax.axvline(0.0, color="0.6", linewidth=1.0)
        ax.set_yticks(places, [self.feature_names[j] for j in chosen])
        ax.set_ylim(len(chosen) - 0.5, -0.5)
        ax.set_xlabel(f"fall of the out-of-bag {self.scoring} from {self.baseline_score:.3f}")
        ax.grid(axis="x", alpha=0.3)
        return ax

    def __repr__(self) -> str:
        width = max(map(len, self.feature_names))
        lines = [f"out-of-bag {self.scoring} {self.baseline_score:.4f} of {self.n_scored:,} rows; its fall by feature:"]
        for j in self._order():
            name, mean, error = self.feature_names[j], self.importances_mean[j], self.importances_stderr[j]
            lines.append(f"  {name:<{width}}  {mean:+.4f} ± {error:.4f}")
        return "\n".join(lines)
