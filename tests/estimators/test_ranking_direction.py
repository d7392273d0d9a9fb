"""The solvers of the linear classifier, step by step."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from aucforest import LinearAUCClassifier
from aucforest.estimators import _ranking_direction
from aucforest.losses.pairwise import value_and_gradient


@pytest.mark.parametrize("weighted", [False, True])
def test_every_stage_has_its_gradient_and_its_penalty(monkeypatch, weighted):
    objectives, lbfgs = [], _ranking_direction._lbfgs

    def spy(objective, start, **arguments):
        objectives.append(objective)
        return lbfgs(objective, start, **arguments)

    monkeypatch.setattr(_ranking_direction, "_lbfgs", spy)
    X, y = make_classification(n_samples=60, n_features=4, random_state=0)
    weights = np.random.default_rng(0).exponential(size=60) if weighted else None
    for alpha in (0.0, 0.3):
        LinearAUCClassifier(alpha=alpha).fit(X, y, sample_weight=weights)
    theta = np.random.default_rng(1).normal(size=4)
    free, penalised = objectives[:4], objectives[5:9]  # the fifth is the calibration's
    for stage in range(4):
        value, gradient = penalised[stage](theta)
        steps = 1e-5 * np.eye(4)
        slopes = [(penalised[stage](theta + step)[0] - penalised[stage](theta - step)[0]) / 2e-5 for step in steps]
        np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)
        score = StandardScaler().fit(X, sample_weight=weights).transform(X) @ theta
        length = 1.0 if stage == 0 else np.average(score**2, weights=weights)
        assert value - free[stage](theta)[0] == pytest.approx(0.15 * (theta @ theta) / length, rel=1e-10)


@pytest.mark.parametrize(("eps", "n_widths"), [(2.0, 1), (1.0, 1), (0.1, 3), (0.02, 5)])
def test_widths_fall_in_steps(monkeypatch, eps, n_widths):
    widths = []

    def spy(pairs, scores, loss, width):
        if [loss, width] not in widths[-1:]:
            widths.append([loss, width])
        return value_and_gradient(pairs, scores, loss, width)

    monkeypatch.setattr(_ranking_direction, "value_and_gradient", spy)
    X, y = make_classification(n_samples=100, flip_y=0.2, random_state=0)
    LinearAUCClassifier(eps=eps).fit(X, y)
    assert [loss for loss, _ in widths] == ["logistic"] + n_widths * ["sigmoid"]
    path = [width for _, width in widths[1:]]
    np.testing.assert_allclose(path, np.geomspace(max(eps, 1.0), eps, n_widths))
    assert min(np.divide(path[1:], path[:-1]), default=1.0) >= 10**-0.5 * (1 - 1e-12)


def test_tiny_matrices_are_not_handed_to_threads():
    def blas_threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before, during = blas_threads(), []

    def objective(theta):
        during.extend(blas_threads())
        return float(theta @ theta), 2.0 * theta

    _ranking_direction._lbfgs(objective, np.ones(2))
    assert set(during) == {1}
    assert blas_threads() == before
