"""Log odds of forests and stacks, divided among features.

If each feature is known with chance t, independently of the others, the mean over trees has an expectation M(t), which
goes from the base value to what is predicted for the row as t goes from 0 to 1. Its change divides among the features,
and the Shapley value of a feature is its part of the whole change (Owen 1972, Management Science 18). The score of an
additive model changes by t times the effect of each feature. Log odds are a function of these numbers, so their change
along the same way divides, too (Aumann, Shapley 1974, "Values of Non-Atomic Games"). The way is taken in steps. Within
a step the rescale rule carries values through logarithms, exponentials and sums: they are multiplied by the change of a
function over that of the number that it is a function of (Shrikumar, Greenside, Kundaje 2017, ICML; Chen, Lundberg,
Lee 2022, Nature Communications 13). So base value and values add up to the log odds, however few the steps are.

The log odds of a class are -log sum exp(z_j - z_k) over the others, so only differences of scores z matter.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, roots_legendre
from sklearn.utils.validation import check_is_fitted

from aucforest.estimators._additive import AdditiveClassifier
from aucforest.estimators._base import TreeBasedClassifier
from aucforest.estimators._calibration import LEAST
from aucforest.estimators._combination import SMALLEST
from aucforest.estimators._intervals import sum_of_others
from aucforest.estimators.stacking import AUCStackingClassifier

# Values of the mean of trees, (n_steps, n_columns, n_samples, n_features), and base values, (n_columns,).
StepsOfMean = tuple[NDArray[np.float64], NDArray[np.float64]]
# The score of a class without training samples, which has the intercept -inf.
_LOWEST = -700.0


class Divided(NamedTuple):
    """Numbers of classes and rows, divided among features."""

    values: NDArray[np.float64]  # (n_classes, n_samples, n_features)
    base: NDArray[np.float64]  # (n_classes, n_samples), or (n_classes, 1) if they are those of all rows
    end: NDArray[np.float64]  # (n_classes, n_samples), base + sum of the values

    def complement(self) -> "Divided":
        """Return 1 minus the numbers."""
        return Divided(-self.values, 1.0 - self.base, 1.0 - self.end)

    def log(self, smallest: float) -> "Divided":
        """Return the logarithms; smaller numbers than `smallest` are replaced by it."""
        base, end = np.maximum(self.base, smallest), np.maximum(self.end, smallest)
        change = self.end - self.base
        is_same = change == 0.0
        kept = np.where(is_same, self.base > smallest, (end - base) / np.where(is_same, 1.0, change))
        return Divided(self.values * (kept * _log_chord(base, end))[..., None], np.log(base), np.log(end))

    def log_share(self, k: int, classes: Sequence[int]) -> "Divided":
        """Return -log sum exp(z_j - z_k) over some classes j for the scores z, of one class."""
        base, end = (scores[classes] - scores[k] for scores in (self.base, self.end))
        greatest = np.maximum(base, end).max(axis=0)
        totals = [np.exp(scores - greatest).sum(axis=0) for scores in (base, end)]
        values = np.zeros_like(self.values[k])
        for j, chord in zip(classes, _exp_chord(base - greatest, end - greatest) * _log_chord(*totals)):
            values += chord[:, None] * (self.values[k] - self.values[j])
        return Divided(values[None], *(-logsumexp(scores, axis=0, keepdims=True) for scores in (base, end)))

    def proba(self) -> "Divided":
        """Return the class probabilities of scores."""
        n_classes = len(self.base)
        logs = join([self.log_share(k, range(n_classes)) for k in range(n_classes)])
        # the logarithm of the sum is divided alike for all classes, which keeps the differences of scores
        values = self.values - np.mean(self.values - logs.values, axis=0)
        return Divided(values * _exp_chord(logs.base, logs.end)[..., None], np.exp(logs.base), np.exp(logs.end))

    def log_odds(self) -> "Divided":
        """Return the log odds of each class against all others."""
        n_classes = len(self.base)
        others = [[j for j in range(n_classes) if j != k] for k in range(n_classes)]
        return join([self.log_share(k, others[k]) for k in range(n_classes)])


@lru_cache(maxsize=64)
def gauss_legendre(n_points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points between 0 and 1 and their weights, exact for polynomials of degree 2 * n_points - 1."""
    points, weights = roots_legendre(n_points)
    return (points + 1.0) / 2.0, weights / 2.0


def join(parts: Sequence[Divided]) -> Divided:
    """Return the numbers of several classes."""
    return Divided(*map(np.concatenate, zip(*parts)))


def _log_chord(base: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the change of the logarithm over that of positive numbers; where they are the same, the derivative."""
    ratio = (end - base) / base
    is_close = np.abs(ratio) < 0.5  # where the difference of logarithms would lose digits
    change = np.where(is_close, np.log1p(np.where(is_close, ratio, 0.0)), np.log(end / base))
    return np.where(ratio == 0.0, 1.0, change / np.where(ratio == 0.0, 1.0, ratio)) / base


def _exp_chord(base: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the change of the exponential over that of numbers up to 0; where they are the same, the derivative."""
    # from the greater one, as the exponential of a difference could overflow
    greatest, gap = np.maximum(base, end), -np.abs(end - base)
    return np.exp(greatest) * np.where(gap == 0.0, 1.0, np.expm1(gap) / np.where(gap == 0.0, 1.0, gap))


def explained_members(model: Any) -> dict[str, Any]:
    """Return the members whose scores make the log odds of a stack; a forest or tree is its only member.

    Raises an error if the model or one of them cannot be explained.
    """
    if isinstance(model, TreeBasedClassifier):
        check_is_fitted(model, "trees_")
        return {"forest": model}
    if not isinstance(model, AUCStackingClassifier):
        kinds = "an AUCForestClassifier, an AUCTreeClassifier or an AUCStackingClassifier"
        raise TypeError(f"explain needs {kinds}, got {type(model).__name__}")
    check_is_fitted(model, "members_")
    weights = zip(model.members_.items(), model.weights_.tolist())
    members = {name: member for (name, member), weight in weights if weight > 0.0 or name == "forest"}
    if "old" in members:
        raise TypeError(
            "a refreshed model that keeps an old one cannot be explained: explain both, model.members_['old'] and"
            " model.members_['forest']"
        )
    linear = members.get("linear")
    if not isinstance(linear, AdditiveClassifier | None):
        raise TypeError(
            f'linear: a {type(linear).__name__} cannot be explained: use linear="auto", or explain the forest of the'
            ' stack, stack.members_["forest"]'
        )
    if linear is not None and not hasattr(linear, "column_means_"):
        raise ValueError("the stack is from a model file of before, without the means that explain needs: fit it again")
    return members


def can_be_explained(model: Any) -> bool:
    """Return whether a fitted model can be explained."""
    try:
        return bool(explained_members(model))
    except (TypeError, ValueError):
        return False


def log_odds(
    model: Any, means: Mapping[str, StepsOfMean], X: NDArray[np.float64], proba: NDArray[np.float64]
) -> Divided:
    """Return the log odds of the probabilities of a model from the means of the trees of its forests.

    X are the features that trees read, and `proba` the probabilities of the model.
    """
    is_stack, steps = isinstance(model, AUCStackingClassifier), {name: _steps_of_mean(*m) for name, m in means.items()}
    n_steps, _, _, n_features = means["forest"][0].shape
    if "linear" in explained_members(model):
        steps["linear"] = _steps_of_additive(model.members_["linear"], X[:, :n_features], n_steps)
    found = []
    for index in range(n_steps):
        numbers = {name: of_member[index] for name, of_member in steps.items()}
        scores = _scores_of_stack(model, numbers) if is_stack else _scores_of_forest(model, numbers["forest"])
        found.append(scores.log_odds())
    divided = Divided(np.sum([step.values for step in found], axis=0), found[0].base, found[-1].end)
    return _as_shown(divided, proba) if is_stack else divided


def _as_shown(divided: Divided, proba: NDArray[np.float64]) -> Divided:
    """Return values that add up to the log odds of probabilities, where 1 - p has lost digits if p is almost 1.

    The difference, which is that of rounding errors, is divided in proportion to the absolute values.
    """
    end, sizes = np.log(proba.T) - np.log(sum_of_others(proba).T), np.abs(divided.values)
    total, rest = sizes.sum(axis=2), end - divided.base - divided.values.sum(axis=2)
    return Divided(divided.values + (rest / np.where(total > 0.0, total, 1.0))[..., None] * sizes, divided.base, end)


def _steps_of_mean(values: NDArray[np.float64], base: NDArray[np.float64]) -> list[Divided]:
    """Return the steps of the mean of trees; with two classes it is given for the second one only."""
    steps, base = [], base[:, None]
    for of_step in values:
        step = Divided(of_step, base, base + of_step.sum(axis=2))
        steps.append(step if len(base) > 1 else join([step.complement(), step]))
        base = step.end
    return steps


def _steps_of_additive(model: AdditiveClassifier, X: NDArray[np.float64], n_steps: int) -> list[Divided]:
    """Return the steps of the scores of an additive model."""
    (effects, means), (_, shares) = model.effects(X), gauss_legendre(n_steps)
    change, passed = effects.sum(axis=2), np.append(0.0, np.cumsum(shares))
    way = [means[:, None] + share * change for share in passed]
    return [Divided(share * effects, *ends) for share, ends in zip(shares, pairwise(way))]


def _scores_of_stack(stack: Any, numbers: Mapping[str, Divided]) -> Divided:
    """Return scores, of which the probabilities of a stack are the softmax."""
    weights, proba = dict(zip(stack.members_, stack.weights_.tolist())), {}
    for name, of_step in numbers.items():
        if name != "linear":
            member = stack.members_[name]
            is_raw = member._calibration is None
            proba[name] = of_step if is_raw else _scores_of_forest(member, of_step).proba()
    scores = {"forest": proba["forest"].log(SMALLEST)}
    if "residual" in numbers:
        parts = proba["residual"], proba["forest"], proba["forest"].complement()
        logs = [part.log(SMALLEST) for part in parts]
        scores["residual"] = _weighted_sum((1.0, -1.0, -1.0), logs, np.zeros(len(stack.classes_)))
    if "linear" in numbers:
        scores["linear"] = numbers["linear"].proba().log(SMALLEST)
    return _weighted_sum([weights[name] for name in scores], list(scores.values()), stack.intercepts_)


def _scores_of_forest(forest: Any, mean: Divided) -> Divided:
    """Return scores, of which the probabilities of a forest are the softmax."""
    calibration = forest._calibration
    if calibration is None:
        return mean.log(SMALLEST)
    return _weighted_sum([calibration.slope], [mean.log(LEAST)], calibration.intercepts)


def _weighted_sum(weights: Sequence[float], parts: Sequence[Divided], intercepts: NDArray[np.float64]) -> Divided:
    """Return the weighted sum of scores, plus intercepts of the classes."""
    values, base, end = (sum(w * x for w, x in zip(weights, arrays)) for arrays in zip(*parts))
    intercepts = np.maximum(intercepts, _LOWEST)[:, None]
    return Divided(values, base + intercepts, end + intercepts)
