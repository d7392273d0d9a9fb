"""Standard errors of class probabilities."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from aucforest.fitting.bootstrap import RowDraws
from aucforest.fitting.out_of_bag import Bags
from aucforest.fitting.spec import tree_keys
from aucforest.inspection.models import check_forest

_BLOCK_ROWS = 1024  # rows whose predictions by all trees are held at a time


def predict_proba_stderr(forest: Any, X: Any) -> NDArray[np.float64]:
    """Estimate how much class probabilities would vary from training set to training set.

    The mean of the infinitesimal jackknife and the jackknife after bootstrap ([1]_, section 2). With N_bi the draws of
    training row i by tree b of B, O_bi whether there were none, p the chance of that, and t_b the probability of a
    class in tree b, the variances are

        V_IJ = sum_i Cov_b(N_bi, t_b)^2 - sum_i Var_b(N_bi) / B * Var_b(t_b),
        V_J = (n - 1) / n * [sum_i Cov_b(O_bi, t_b)^2 - sum_i Var_b(O_bi) / B * Var_b(t_b)] / p^2,

    where Cov and Var are over trees. The sums of squared covariances are too large by what the chance of B trees adds;
    the terms that are subtracted estimate that. For deep trees V_IJ is too small and V_J too large, by about as much.
    The training data are not needed: draws are made anew from the seed. With t the vector of t_b less its mean, the
    sums of squared covariances are t' N N' t / B^2 and t' O O' t / B^2, in which N N' and O O' are matrices of trees by
    trees.

    Parameters
    ----------
    forest : AUCForestClassifier
        Fitted with ``bootstrap=True`` and ``sampling="bootstrap"``, of any `max_samples`.
    X : array-like of shape (n_samples, n_features)

    Returns
    -------
    ndarray of shape (n_samples, n_classes), float64
        Standard errors of ``predict_proba``; NaN, with a UserWarning, where the estimate of a variance is negative:
        then the trees are too few to tell it from their own chance. It takes several trees a training row, see Notes.

    Raises
    ------
    ValueError
        For a forest that does not draw bootstraps, or whose trees drew unlike each other (by a warm start).
    TypeError
        For another model.

    Notes
    -----
    The errors are of the mean over infinitely many trees: random features, and with them the trees themselves,
    are averaged out. They say nothing of bias. Rows of the training are estimated as new ones would be.

    In simulations of ``criterion="auc"`` (``python benchmarks/intervals.py stderr``) of 50 training sets they were 0.93
    times the standard deviation over training sets of 200 rows, with 1,000 trees and default parameters, 1.02 times
    with ``min_samples_leaf=10``, and 0.88 times with 800 rows. With 200 rows 29 % were NaN with 100 trees, 1.6 % with
    1,000; with 800 rows 26 % with 300 trees and 9 % with 1,000: fit more than the default where standard errors are
    wanted. Those of mixed forests were larger in one simulation: their variance was 1.33 times that over training sets.

    References
    ----------
    .. [1] S. Wager, T. Hastie, B. Efron, "Confidence intervals for random forests: the jackknife and the
       infinitesimal jackknife", Journal of Machine Learning Research 15 (2014), 1625-1651.

    Examples
    --------
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.datasets import load_abalone
    >>> from aucforest.inspection import predict_proba_stderr
    >>> X, rings = load_abalone(return_X_y=True)
    >>> forest = AUCForestClassifier(1000, min_samples_leaf=20, random_state=0).fit(X[:500], rings[:500] >= 12)
    >>> errors = predict_proba_stderr(forest, X[500:503])
    >>> errors.shape, bool(0.005 < errors.min() <= errors.max() < 0.2)
    ((3, 2), True)
    """
    check_forest(forest)
    variances = _estimate_variances(forest, X)
    n_negative = int(np.count_nonzero(variances < 0))
    if n_negative > 0:
        found = f"{n_negative} of {variances.size} standard errors are NaN: {len(forest.trees_)} trees"
        warnings.warn(f"{found} are too few to tell them from the chance of the trees", stacklevel=2)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(variances))


def _estimate_variances(forest: Any, X: Any) -> NDArray[np.float64]:
    """Return the estimates of variances, (n_samples, n_classes), some of which may be negative."""
    products, spread = _products_of_draws(_bootstrap(forest), tree_keys(forest._seed, range(len(forest.trees_))))
    n_trees, predictions, blocks = len(forest.trees_), [tree.prediction for tree in forest.trees_], []
    for start in range(0, _num_samples(X), _BLOCK_ROWS):
        leaves = forest.apply(_safe_indexing(X, slice(start, start + _BLOCK_ROWS)))
        proba = np.stack([prediction[leaves[:, b]] for b, prediction in enumerate(predictions)])
        varies = np.ptp(proba, axis=0) > 0
        proba -= proba.mean(axis=0)
        flat = proba.reshape(n_trees, -1)
        variance = np.einsum("bi,bi->i", flat, products @ flat) / n_trees**2
        variance -= spread / n_trees * np.mean(flat**2, axis=0)
        # What all trees agree on does not vary, whatever rounding says.
        blocks.append(np.where(varies, variance.reshape(varies.shape), 0.0))
    return np.concatenate(blocks)


def _bootstrap(forest: Any) -> RowDraws:
    """Return how the trees of a forest drew; refuse anything but one bootstrap."""
    drawn, *others = forest._drawn
    if others or len(drawn.sizes) != 1 or not drawn.replace:
        raise ValueError(
            "standard errors need trees of bootstraps of all rows alike, but these drew"
            f" {', '.join(map(str, forest._drawn))} rows"
        )
    drawn.check_stream()
    return RowDraws.of_all(drawn.n_rows, drawn.sizes[0])


def _products_of_draws(draws: RowDraws, keys: list[int]) -> tuple[NDArray[np.float64], float]:
    """Return the mean of N N' and (n - 1) / n O O' / p^2, and likewise the sums over rows of their variances."""
    bags = Bags(draws, keys, np.arange(draws.n_rows))
    products, spread = np.zeros((len(keys), len(keys))), 0.0
    missed = 1.0 - 1.0 / draws.n_rows  # by one draw
    of_left_out = missed / missed ** (2 * int(draws.sizes[0]))
    for block in range(bags.n_blocks):
        # Sums of products over a block are integers that float32 holds.
        counts = bags.counts(block, range(len(keys))).astype(np.float32)
        for each, factor in ((counts, 0.5), ((counts == 0).astype(np.float32), 0.5 * of_left_out)):
            products += np.multiply(each @ each.T, factor, dtype=np.float64)
            spread += factor * float(each.var(axis=0, dtype=np.float64).sum())
    return products, spread
