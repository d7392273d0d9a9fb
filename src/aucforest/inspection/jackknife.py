"""Standard errors of class probabilities."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from aucforest.fitting.bootstrap import BootstrapSampler
from aucforest.fitting.out_of_bag import Bags
from aucforest.fitting.spec import tree_keys
from aucforest.inspection.models import check_forest
from aucforest.tables.rows import indexable_rows

_BLOCK_ROWS = 1024  # rows whose predictions by all trees are held at a time


def predict_proba_stderr(forest: Any, X: Any) -> NDArray[np.float64]:
    """Standard errors of class probabilities over training sets.

    The variance is the mean of the infinitesimal jackknife and the jackknife after bootstrap ([1]_, section 2). Let
    N_bi be the count of training sample i in the bootstrap sample of tree b of B, O_bi whether this count is 0, p the
    probability of that, and t_b the probability of a class predicted by tree b. The two estimates are

        V_IJ = sum_i Cov_b(N_bi, t_b)^2 - sum_i Var_b(N_bi) / B * Var_b(t_b),
        V_J = (n - 1) / n * [sum_i Cov_b(O_bi, t_b)^2 - sum_i Var_b(O_bi) / B * Var_b(t_b)] / p^2,

    where Cov and Var are over trees. The second terms correct the bias due to the finite number of trees. For deep
    trees V_IJ is biased downwards and V_J upwards by about the same amount. The training data are not needed, since the
    bootstrap samples are reproduced from the seed. The sums of squared covariances are computed as t' N N' t / B^2 and
    t' O O' t / B^2, where t is the centered vector of the t_b.

    Parameters
    ----------
    forest : AUCForestClassifier
        A forest fitted with ``bootstrap=True`` and ``sampling="bootstrap"``, and any `max_samples`.
    X : array-like of shape (n_samples, n_features)
        The input samples.

    Returns
    -------
    ndarray of shape (n_samples, n_classes), float64
        Standard errors of ``predict_proba``. NaN, with a UserWarning, if the estimated variance is negative because the
        forest has too few trees. Several trees for each training sample are needed; see Notes.

    Raises
    ------
    ValueError
        If the trees were not grown on bootstrap samples of all samples, or if a warm start changed the sampling.
    TypeError
        If the model is not supported.

    Notes
    -----
    The standard errors are those of a forest with infinitely many trees. They do not include bias. Training samples
    are treated like new ones. A calibration is linearized (delta method) and regarded as known: the error of its slope,
    ``calibration_.slope_std``, is not included. If `fit` had groups, i stands for a group, and training sets are sets
    of groups.

    In simulations of 50 training sets with ``criterion="auc"`` (``python benchmarks/intervals.py stderr``) they were
    0.93 times the true standard deviation for 200 samples, 1,000 trees and default parameters, 1.02 times with
    ``min_samples_leaf=10`` and 0.88 times for 800 samples. For 200 samples 29 % were NaN with 100 trees and 1.6 % with
    1,000; for 800 samples 26 % with 300 trees and 9 % with 1,000. Use more trees than the default. For a mixed forest
    the estimated variance was 1.33 times the true one in one simulation.

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
    variances = _estimate_variances(forest, indexable_rows(X))
    n_negative = int(np.count_nonzero(variances < 0))
    if n_negative > 0:
        found = f"{n_negative} of {variances.size} standard errors are NaN"
        warnings.warn(f"{found}: {len(forest.trees_)} trees are too few, fit more", stacklevel=2)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(variances))


def _estimate_variances(forest: Any, X: Any) -> NDArray[np.float64]:
    """Return the estimates of variances, (n_samples, n_classes), some of which may be negative."""
    products, spread = _products_of_counts(_bootstrap(forest), tree_keys(forest._seed, range(len(forest.trees_))))
    n_trees, predictions, blocks = len(forest.trees_), [tree.prediction for tree in forest.trees_], []
    for start in range(0, _num_samples(X), _BLOCK_ROWS):
        leaves = forest.apply(_safe_indexing(X, slice(start, start + _BLOCK_ROWS)))
        proba = np.stack([prediction[leaves[:, b]] for b, prediction in enumerate(predictions)])
        varies, mean = np.ptp(proba, axis=0) > 0, proba.mean(axis=0)
        proba -= mean
        if forest.calibration_ is not None:
            proba = np.einsum("ijk,bik->bij", forest.calibration_.derivative(mean), proba)
        flat = proba.reshape(n_trees, -1)
        variance = np.einsum("bi,bi->i", flat, products @ flat) / n_trees**2
        variance -= spread / n_trees * np.mean(flat**2, axis=0)
        # Where all trees agree the variance is 0 without rounding errors.
        blocks.append(np.where(varies, variance.reshape(varies.shape), 0.0))
    return np.concatenate(blocks)


def _bootstrap(forest: Any) -> BootstrapSampler:
    """Return the sampler of a forest; raise ValueError unless all trees have the same kind of bootstrap sample."""
    record, *others = forest._sample_records
    if others or len(record.sizes) != 1 or not record.replace:
        raise ValueError(
            "standard errors need bootstrap=True and sampling='bootstrap' for all trees, but these were grown on"
            f" {', '.join(map(str, forest._sample_records))}"
        )
    sampler: BootstrapSampler = record.to_sampler()
    return sampler


def _products_of_counts(sampler: BootstrapSampler, keys: list[int]) -> tuple[NDArray[np.float64], float]:
    """Return the mean of N N' and (n - 1) / n O O' / p^2, and likewise the sums over rows of their variances."""
    bags = Bags(sampler, keys, np.arange(sampler.n_rows))
    products, spread = np.zeros((len(keys), len(keys))), 0.0
    missed = 1.0 - 1.0 / sampler.n_rows  # by one of the sampled rows
    of_left_out = missed / missed ** (2 * int(sampler.sizes[0]))
    for block in range(bags.n_blocks):
        # Sums of products over a block are integers that float32 holds.
        counts = bags.counts(block, range(len(keys))).astype(np.float32)
        for each, factor in ((counts, 0.5), ((counts == 0).astype(np.float32), 0.5 * of_left_out)):
            products += np.multiply(each @ each.T, factor, dtype=np.float64)
            spread += factor * float(each.var(axis=0, dtype=np.float64).sum())
    return products, spread
