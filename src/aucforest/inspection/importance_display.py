"""The result of a permutation importance: table and picture."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest._optional import import_optional
from aucforest.inspection.display import Display
from aucforest.metrics._intervals import require_level, t_quantile


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
    n_parts : int
        Random parts of the rows that the standard errors are from.
    """

    importances: NDArray[np.float64]
    importances_stderr: NDArray[np.float64]
    baseline_score: float
    n_scored: int
    scoring: str
    feature_names: tuple[str, ...]
    n_parts: int

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

    def importances_interval(self, level: float = 0.95) -> NDArray[np.float64]:
        """Return confidence intervals of the importances, by Student's t with ``n_parts - 1`` degrees of freedom.

        Parameters
        ----------
        level : float in (0, 1), default=0.95
            Confidence level.

        Returns
        -------
        ndarray of shape (n_features, 2), float64
            Low and high; NaN where the standard errors are.

        Raises
        ------
        ValueError
            For a `level` outside (0, 1).
        """
        require_level(level)
        half = self.importances_stderr * t_quantile(max(self.n_parts - 1, 1), level)
        return np.stack((self.importances_mean - half, self.importances_mean + half), axis=1)

    def _order(self) -> NDArray[np.int64]:
        """Return the features by falling importance."""
        return np.argsort(-self.importances_mean, kind="stable")

    def to_frame(self) -> Any:
        """Return a pandas DataFrame (extra ``frame``): a row for each feature, the most important first."""
        pandas = import_optional("pandas", purpose="to_frame", extra="frame")
        columns = {"mean": self.importances_mean, "stderr": self.importances_stderr, "std": self.importances_std}
        index = pandas.Index(self.feature_names, name="feature")
        return pandas.DataFrame(columns, index=index).iloc[self._order()]

    def plot(self, ax: Any = None, *, max_features: int = 20) -> "ImportanceDisplay":
        """Draw the importances with their 95 % intervals, the most important on top.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        max_features : int, default=20
            How many features are drawn.

        Returns
        -------
        ImportanceDisplay
            Drawn.

        Raises
        ------
        ImportError
            Without matplotlib (extra ``plot``).
        """
        return ImportanceDisplay(self, max_features=max_features).plot(ax)

    def __repr__(self) -> str:
        width = max(map(len, self.feature_names))
        lines = [f"out-of-bag {self.scoring} {self.baseline_score:.4f} of {self.n_scored:,} rows; its fall by feature:"]
        for j in self._order():
            name, mean, error = self.feature_names[j], self.importances_mean[j], self.importances_stderr[j]
            lines.append(f"  {name:<{width}}  {mean:+.4f} ± {error:.4f}")
        return "\n".join(lines)


@dataclass(repr=False, eq=False)
class ImportanceDisplay(Display):
    """Importances with their 95 % intervals, the most important on top; made by `PermutationImportance.plot`.

    Parameters
    ----------
    importance : PermutationImportance
        What is drawn.
    max_features : int, default=20
        How many features are drawn.

    Attributes
    ----------
    container_ : matplotlib ErrorbarContainer
        Points and intervals, the most important feature first.
    ax_, figure_ : matplotlib Axes and Figure
        Where `plot` drew.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import oob_permutation_importance
    >>> X, rings = load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(50, random_state=0).fit(X, rings >= 12)
    >>> display = oob_permutation_importance(forest, X, rings >= 12, random_state=0).plot(max_features=3)
    >>> display.ax_.get_yticklabels()[0].get_text()
    'feature_7'
    """

    importance: PermutationImportance
    _: KW_ONLY
    max_features: int = 20

    def _size(self) -> tuple[float, float]:
        return 6.4, 0.9 + 0.3 * min(self.max_features, len(self.importance.feature_names))

    def _draw(self, ax: Any) -> None:
        of = self.importance
        drawn = of._order()[: self.max_features]
        places, errors = np.arange(len(drawn)), np.diff(of.importances_interval()[drawn], axis=1)[:, 0] / 2
        style = {"fmt": "o", "markersize": 5, "capsize": 2}
        self.container_ = ax.errorbar(of.importances_mean[drawn], places, xerr=errors, **style)
        ax.axvline(0.0, color="0.6", linewidth=1.0)
        ax.set_yticks(places, [of.feature_names[j] for j in drawn])
        ax.set_ylim(len(drawn) - 0.5, -0.5)
        ax.set_xlabel(f"fall of the out-of-bag {of.scoring} from {of.baseline_score:.3f}")
        ax.grid(axis="x", alpha=0.3)
