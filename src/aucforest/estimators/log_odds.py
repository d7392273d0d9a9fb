"""Log odds of forests and stacks, divided among the features.

Suppose that each feature is known with probability t, independently of the others. As t goes from 0 to 1, the expected
mean over trees M(t) goes from the base value to the prediction for the row. The contribution of a feature to this
change is its Shapley value (Owen 1972, Management Science 18). The score of an additive model changes by t times the
effect of each feature. Log odds are a function of M(t) and the scores of additive models. By the chain rule, their
change along t is a sum with a term for each feature (Aumann, Shapley 1974, "Values of Non-Atomic Games").

The integral along t is computed in steps. Within a step, the rescale rule is used: for y = f(x), the contributions of
the features to x are multiplied by the change of y divided by the change of x (Shrikumar, Greenside, Kundaje 2017,
ICML; Chen, Lundberg, Lee 2022, Nature Communications 13). So for any number of steps, the base value and the
contributions of the features sum to the log odds. In the code, the contributions are called values.

The log odds of class k are -log sum exp(z_j - z_k) over the other classes j: only differences of scores z matter.
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
from aucforest.estimators._calibration import MIN_PROBA
from aucforest.estimators._combination import MIN_STACK_PROBA
from aucforest.estimators._intervals import sum_of_others
from aucforest.estimators.stacking import AUCStackingClassifier

# Values of the mean over trees, (n_steps, n_columns, n_samples, n_features), and base values, (n_columns,). There is a
# column for each class, but of two classes only for the second one.
StepsOfMean = tuple[NDArray[np.float64], NDArray[np.float64]]
# The members of a stack whose scores depend on means over trees.
_FORESTS = "forest", "residual", "boosted"
# Lower intercepts are raised to this value, because a class without training samples has the intercept -inf.
_MIN_INTERCEPT = -700.0


class Attribution(NamedTuple):
    """A number for each class and sample, such as a score, divided among the features."""

    values: NDArray[np.float64]  # (n_classes, n_samples, n_features)
    base: NDArray[np.float64]  # (n_classes, n_samples), or (n_classes, 1) if equal for all samples
    end: NDArray[np.float64]  # (n_classes, n_samples), base + sum of the values

    def complement(self) -> "Attribution":
        """Return 1 minus the numbers."""
        return Attribution(-self.values, 1.0 - self.base, 1.0 - self.end)

    def log(self, minimum: float) -> "Attribution":
        """Return the logarithms; smaller numbers are raised to `minimum` first."""
        base, end = np.maximum(self.base, minimum), np.maximum(self.end, minimum)
        change = self.end - self.base
        is_same = change == 0.0
        # The slope of np.maximum(x, minimum) between base and end.
        slope = np.where(is_same, self.base > minimum, (end - base) / np.where(is_same, 1.0, change))
        return Attribution(self.values * (slope * _log_slope(base, end))[..., None], np.log(base), np.log(end))

    def log_odds_against(self, k: int, classes: Sequence[int]) -> "Attribution":
        """Return the log odds of class k against `classes`: -log sum exp(z_j - z_k) over these classes j."""
        base, end = (scores[classes] - scores[k] for scores in (self.base, self.end))
        largest = np.maximum(base, end).max(axis=0)
        totals = [np.exp(scores - largest).sum(axis=0) for scores in (base, end)]
        values = np.zeros_like(self.values[k])
        for j, slope in zip(classes, _exp_slope(base - largest, end - largest) * _log_slope(*totals)):
            values += slope[:, None] * (self.values[k] - self.values[j])
        return Attribution(values[None], *(-logsumexp(scores, axis=0, keepdims=True) for scores in (base, end)))

    def proba(self) -> "Attribution":
        """Return class probabilities, the softmax of the scores."""
        n_classes = len(self.base)
        logs = join([self.log_odds_against(k, range(n_classes)) for k in range(n_classes)])
        # The same is subtracted from all classes, so that the values sum to the changes of `logs`.
        values = self.values - np.mean(self.values - logs.values, axis=0)
        return Attribution(values * _exp_slope(logs.base, logs.end)[..., None], np.exp(logs.base), np.exp(logs.end))

    def log_odds(self) -> "Attribution":
        """Return the log odds of each class against all others."""
        classes = range(len(self.base))
        return join([self.log_odds_against(k, [j for j in classes if j != k]) for k in classes])


@lru_cache(maxsize=64)
def gauss_legendre(n_points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points and weights of a quadrature on [0, 1] that is exact for polynomials of degree 2 * n_points - 1."""
    points, weights = roots_legendre(n_points)
    return (points + 1.0) / 2.0, weights / 2.0


def join(parts: Sequence[Attribution]) -> Attribution:
    """Return attributions of different classes as one."""
    return Attribution(*map(np.concatenate, zip(*parts)))


def _log_slope(base: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the change of log(x) divided by the change of x, or 1 / x if x is unchanged; x is positive."""
    ratio = (end - base) / base
    is_close = np.abs(ratio) < 0.5  # where the difference of logarithms would lose digits
    change = np.where(is_close, np.log1p(np.where(is_close, ratio, 0.0)), np.log(end / base))
    return np.where(ratio == 0.0, 1.0, change / np.where(ratio == 0.0, 1.0, ratio)) / base


def _exp_slope(base: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the change of exp(x) divided by the change of x, or its derivative if x is unchanged; x is at most 0."""
    # The larger exponential is factored out, because the exponential of a positive difference could overflow.
    largest, gap = np.maximum(base, end), -np.abs(end - base)
    return np.exp(largest) * np.where(gap == 0.0, 1.0, np.expm1(gap) / np.where(gap == 0.0, 1.0, gap))


class InputsOfModel(NamedTuple):
    """A model, and what is needed to divide its log odds among the features."""

    model: Any
    means: Mapping[str, StepsOfMean]  # by name of the forest in a stack
    X: NDArray[np.float64]  # the features of the trees
    explained_as: NDArray[np.int64]  # for each feature of the trees, the index of the feature that gets its value

    def rows(self, rows: slice) -> "InputsOfModel":
        """Return the inputs for the given rows."""
        means = {name: (values[:, :, rows], base) for name, (values, base) in self.means.items()}
        return self._replace(means=means, X=self.X[rows])


def explained_members(model: Any) -> dict[str, Any]:
    """Return the members that the log odds of a stack depend on, by name; a forest or a tree has the name "forest".

    Raises an error if the model or its linear member cannot be explained. A member "old" is not checked.
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
    linear = members.get("linear")
    if not isinstance(linear, AdditiveClassifier | None):
        raise TypeError(
            f'linear: a {type(linear).__name__} cannot be explained: use linear="auto", or explain the forest of the'
            ' stack, stack.members_["forest"]'
        )
    return members


def explained_models(model: Any) -> list[Any]:
    """Return a model, its member "old" if it has one, the member "old" of this one, and so on.

    Raises an error if one of the models cannot be explained.
    """
    old = explained_members(model).get("old")
    return [model] if old is None else [model, *explained_models(old)]


def forests_of(model: Any) -> dict[str, Any]:
    """Return the forests of a model, by the names of the members of a stack."""
    return {name: member for name, member in explained_members(model).items() if name in _FORESTS}


def can_be_explained(model: Any) -> bool:
    """Return whether a fitted model can be explained."""
    try:
        explained_models(model)
    except TypeError:
        return False
    return True


def log_odds(inputs: Sequence[InputsOfModel], proba: NDArray[np.float64]) -> Attribution:
    """Return the log odds of a model divided among features; `proba` are the probabilities of the model.

    `inputs` has an item for each of the `explained_models`.
    """
    steps = [scores.log_odds() for scores in _steps_of_scores(inputs)]
    attribution = Attribution(np.sum([step.values for step in steps], axis=0), steps[0].base, steps[-1].end)
    return _match_proba(attribution, proba) if isinstance(inputs[0].model, AUCStackingClassifier) else attribution


def _steps_of_scores(inputs: Sequence[InputsOfModel]) -> list[Attribution]:
    """Return the class scores of the model of `inputs[0]` for each step."""
    model, means, X, explained_as = inputs[0]
    steps = {name: _steps_of_mean(*mean) for name, mean in means.items()}
    n_steps, _, _, n_features = means["forest"][0].shape
    members = explained_members(model)
    if "linear" in members:
        n_read = members["linear"].n_features_  # without target rates, which come last
        effects, means_of_linear = members["linear"].effects(X[:, :n_read])
        explained = np.zeros((*effects.shape[:2], n_features))
        for feature, index in enumerate(explained_as[:n_read].tolist()):
            explained[:, :, index] += effects[:, :, feature]
        steps["linear"] = [scores.proba() for scores in _steps_of_additive(explained, means_of_linear, n_steps)]
    if "old" in members:
        steps["old"] = [scores.proba() for scores in _steps_of_scores(inputs[1:])]
    if not isinstance(model, AUCStackingClassifier):
        return [_scores_of_forest(model, step) for step in steps["forest"]]
    return [_scores_of_stack(model, dict(zip(steps, members_of_step))) for members_of_step in zip(*steps.values())]


def _match_proba(approximate: Attribution, proba: NDArray[np.float64]) -> Attribution:
    """Return an attribution that sums exactly to the log odds of `proba`.

    Where a probability is almost 1, rounding errors of log odds are large. They are divided among the features in
    proportion to absolute values.
    """
    end, sizes = np.log(proba.T) - np.log(sum_of_others(proba).T), np.abs(approximate.values)
    total, error = sizes.sum(axis=2), end - approximate.base - approximate.values.sum(axis=2)
    values = approximate.values + (error / np.where(total > 0.0, total, 1.0))[..., None] * sizes
    return Attribution(values, approximate.base, end)


def _steps_of_mean(values: NDArray[np.float64], base: NDArray[np.float64]) -> list[Attribution]:
    """Return the mean over trees in each step, for all classes; see `StepsOfMean`."""
    steps, base = [], base[:, None]
    for step_values in values:
        step = Attribution(step_values, base, base + step_values.sum(axis=2))
        steps.append(step if len(base) > 1 else join([step.complement(), step]))
        base = step.end
    return steps


def _steps_of_additive(effects: NDArray[np.float64], means: NDArray[np.float64], n_steps: int) -> list[Attribution]:
    """Return the class scores of an additive model in each step, given the effects of features and the mean scores."""
    _, weights = gauss_legendre(n_steps)
    change = effects.sum(axis=2)
    scores = [means[:, None] + t * change for t in np.append(0.0, np.cumsum(weights))]
    return [Attribution(weight * effects, *ends) for weight, ends in zip(weights, pairwise(scores))]


def _scores_of_stack(stack: Any, steps: Mapping[str, Attribution]) -> Attribution:
    """Return the scores of a stack, whose softmax gives the probabilities.

    `steps` maps the name of a member to its mean over trees, if it is a forest, else to its probabilities.
    """
    weights, proba = dict(zip(stack.members_, stack.weights_.tolist())), {}
    for name, step in steps.items():
        is_calibrated = name in ("forest", "residual") and stack.members_[name]._calibration is not None
        proba[name] = _scores_of_forest(stack.members_[name], step).proba() if is_calibrated else step
    scores = {"forest": proba["forest"].log(MIN_STACK_PROBA)}
    if "residual" in steps:
        parts = proba["residual"], proba["forest"], proba["forest"].complement()
        logs = [part.log(MIN_STACK_PROBA) for part in parts]
        scores["residual"] = _weighted_sum((1.0, -1.0, -1.0), logs)
    if "boosted" in steps:
        scores["boosted"] = _weighted_sum([stack._boosted_scale], [steps["boosted"]])
    scores |= {name: proba[name].log(MIN_STACK_PROBA) for name in ("linear", "old") if name in proba}
    return _weighted_sum([weights[name] for name in scores], list(scores.values()), stack.intercepts_)


def _scores_of_forest(forest: Any, mean: Attribution) -> Attribution:
    """Return the scores of a forest, whose softmax gives the probabilities."""
    calibration = forest._calibration
    if calibration is None:
        return mean.log(MIN_STACK_PROBA)
    return _weighted_sum([calibration.slope], [mean.log(MIN_PROBA)], calibration.intercepts)


def _weighted_sum(weights: Sequence[float], parts: Sequence[Attribution], intercepts: Any = (0.0,)) -> Attribution:
    """Return the weighted sum of scores plus the intercepts of the classes."""
    values, base, end = (sum(w * x for w, x in zip(weights, arrays)) for arrays in zip(*parts))
    intercepts = np.maximum(intercepts, _MIN_INTERCEPT)[:, None]
    return Attribution(values, base + intercepts, end + intercepts)
