"""How fast are the losses, and the linear classifier? Against one exponential a row, the double loop, the article."""

from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np
from _timing import in_fresh_process, interleaved, peak_rss_mib
from numba import jit
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from aucforest import LinearAUCClassifier
from aucforest.losses import pairwise_loss, smooth_auc

FIRST_CALL = """
import time
import numpy, numba, scipy.special, sklearn
y, scores = numpy.array([0, 1, 0, 1]), numpy.array([0.1, 0.4, 0.35, 0.8])
start = time.perf_counter()
from aucforest.losses import pairwise_loss
pairwise_loss(y, scores, loss="sigmoid")
print(time.perf_counter() - start)
"""


def two_classes(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels, half of them positive, and normal scores."""
    rng = np.random.default_rng(0)
    y = (rng.random(n_rows) < 0.5).astype(int)
    return y, rng.normal(size=n_rows) + y


@jit(nopython=True)
def double_loop(scores, positive, scale):  # type: ignore[no-untyped-def]
    """Return the smoothed AUC and its derivatives by the scaled scores, one pair after the other."""
    upper, lower = np.flatnonzero(positive), np.flatnonzero(~positive)
    slopes, value = np.zeros(scores.size), 0.0
    for i in upper:
        for j in lower:
            distance = (scores[i] - scores[j]) * scale
            decay = np.exp(-abs(distance))
            value += (1.0 if distance > 0.0 else decay) / (1.0 + decay)
            slope = decay / (1.0 + decay) ** 2
            slopes[i] += slope
            slopes[j] -= slope
    n_pairs = upper.size * lower.size
    return value / n_pairs, scale * slopes / n_pairs


def compare_with_the_double_loop() -> None:
    """Time value and gradient of the smoothed AUC at 1e5 rows both ways; check that they agree."""
    y, scores = two_classes(10**5)
    double_loop(scores[:100], y[:100] == 1, 1.0)  # compiled before it is timed
    print(f"{'1e+05 rows':<46}{'ours, ms':>10}{'loop, ms':>11}{'ratio':>8}  goal")
    for eps in (0.1, 0.01):
        fast = partial(smooth_auc, y, scores, eps)
        start = perf_counter()
        value, gradient = double_loop(scores, y == 1, 1.0 / eps)
        exact = perf_counter() - start  # once: the loop takes seconds
        np.testing.assert_allclose(fast()[0], value, rtol=1e-10)
        np.testing.assert_allclose(fast()[1], gradient, rtol=1e-10, atol=1e-10 * np.abs(gradient).max())
        full = partial(pairwise_loss, y, scores, loss="sigmoid", eps=eps)
        seconds = interleaved({"smooth_auc": fast, "pairwise_loss with hessian": full}, 9)
        for name, ours in seconds.items():
            print(f"{f'{name}, eps {eps}':<46}{1e3 * ours:>10.2f}{1e3 * exact:>11.0f}{exact / ours:>8.0f}  >= 200")


def compare_with_exponentials() -> None:
    """Time every loss in units of one np.exp over the scores."""
    for n_rows in (10**5, 10**6):
        y, scores = two_classes(n_rows)
        runs: dict[str, Callable[[], object]] = {"np.exp": partial(np.exp, scores)}
        for loss in ("exp", "squared_hinge", "sigmoid", "logistic"):
            runs[loss] = partial(pairwise_loss, y, scores, loss=loss)
        interleaved(runs, 1)
        seconds = interleaved(runs, 15)
        print(f"\n{f'{n_rows:.0e} rows':<46}{'ms':>10}{'np.exp':>11}")
        for name, ours in seconds.items():
            goal = "  < 5" if (name, n_rows) == ("exp", 10**6) else ""
            print(f"{name:<46}{1e3 * ours:>10.2f}{ours / seconds['np.exp']:>11.1f}{goal}")


@jit(nopython=True)
def article_gradient(theta, upper, lower, n_pairs, eps, seed):  # type: ignore[no-untyped-def]
    """Return the gradient of the smoothed AUC over random pairs, as the article has it, a loop over pairs."""
    np.random.seed(seed)  # noqa: NPY002  numba's own generator, as in the article
    ones = np.random.choice(np.arange(upper.shape[0]), size=n_pairs)  # noqa: NPY002
    zeros = np.random.choice(np.arange(lower.shape[0]), size=n_pairs)  # noqa: NPY002
    total = np.zeros_like(theta)
    for k in range(n_pairs):
        difference = lower[zeros[k]] - upper[ones[k]]
        sigmoid = 1.0 / (1.0 + np.exp(-(theta @ difference) / eps))
        total = total + sigmoid * (1.0 - sigmoid) * difference
    return total / (n_pairs * eps)


def article_ascent(X: np.ndarray, y: np.ndarray, held_out: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
    """Return theta after the article's 900 epochs; with held-out rows it also scores both sets each epoch."""
    upper, lower = X[y == 1], X[y == 0]
    theta = np.random.default_rng(123).normal(size=X.shape[1])
    rate = 0.5
    for epoch in range(900):
        rate /= 1.0001
        theta = theta - rate * article_gradient(theta, upper, lower, 500, 0.01, epoch)
        if held_out is not None:
            roc_auc_score(y, X @ theta)
            roc_auc_score(held_out[1], held_out[0] @ theta)
    return theta


def compare_with_the_article() -> None:
    """Time the article's example and print what each way reaches."""
    X, y = make_classification(n_samples=2000, n_informative=9, n_redundant=0, n_repeated=0, random_state=2)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=4)
    runs: dict[str, Callable[[], object]] = {
        "article's ascent as published": partial(article_ascent, X_train, y_train, (X_test, y_test)),
        "article's ascent without its curves": partial(article_ascent, X_train, y_train, None),
        "LinearAUCClassifier": LinearAUCClassifier().fit,
        "LogisticRegression": LogisticRegression().fit,
    }
    runs = {name: run if isinstance(run, partial) else partial(run, X_train, y_train) for name, run in runs.items()}
    results = {name: run() for name, run in runs.items()}
    seconds = interleaved(runs, 5)
    published = seconds["article's ascent as published"]
    print(f"\n{'the example of the article':<46}{'ms':>10}{'ratio':>11}{'train AUC':>11}{'test AUC':>11}")
    for name, result in results.items():
        coef = result if isinstance(result, np.ndarray) else result.coef_[0]
        train, test = (roc_auc_score(y, X @ coef) for X, y in ((X_train, y_train), (X_test, y_test)))
        goal = "  >= 10, test >= 0.8955" if name == "LinearAUCClassifier" else ""
        print(
            f"{name:<46}{1e3 * seconds[name]:>10.1f}{published / seconds[name]:>11.1f}{train:>11.4f}{test:>11.4f}{goal}"
        )


if __name__ == "__main__":
    compare_with_the_double_loop()
    compare_with_exponentials()
    compare_with_the_article()
    in_fresh_process(FIRST_CALL)
    print(f"\nimport and first loss, cached: {in_fresh_process(FIRST_CALL):.2f} s", end=", ")
    print(f"cold: {in_fresh_process(FIRST_CALL, cold=True):.2f} s")
    print(f"peak memory {peak_rss_mib():.0f} MiB")
