"""Training sets as growing takes them."""

from types import SimpleNamespace

import numpy as np

from aucforest.estimators.forest import AUCForestClassifier
from aucforest.fitting.bootstrap import BootstrapSampler
from aucforest.fitting.growing import grow_batches
from aucforest.fitting.parts import Growth, Part
from aucforest.fitting.spec import resolve_params, resolve_signs
from aucforest.tree.binning import bin_matrix
from aucforest.tree.features import CATEGORICAL, NUMERIC


def prepare(X, labels, weights=None, by_set=None, sampler="all", max_bins=255, **params):
    """Return what a forest with these parameters grows its trees by, and the rows."""
    n_classes = int(labels.max()) + 1
    if sampler == "all":
        sampler = BootstrapSampler.of_all(len(labels), len(labels))
    given = AUCForestClassifier(**{"criterion": "auc", **params}).get_params()
    signs = resolve_signs(given["monotonic_cst"], None, X.shape[1], n_classes)
    resolved = resolve_params(given, len(labels), X.shape[1], signs)
    return code_rows(X, labels, resolved, given, sampler, weights, max_bins, by_set)


def grow_trees(growth, part, keys, n_jobs=1):
    """Return one tree for every key."""
    trees = {
        index: tree for some, grown in grow_batches(growth, part, keys, n_jobs) for index, tree in zip(some, grown)
    }
    return [trees[index] for index in range(len(keys))]


class Spec(SimpleNamespace):
    """What growing trees needs of the specification of a fit."""

    def without_rows(self):
        return self


def code_rows(X, labels, params, given, sampler=None, weights=None, max_bins=255, by_set=None):
    """Return what trees of these parameters, resolved and as given to an estimator, share, and the rows."""
    kinds = np.where(np.zeros(X.shape[1], bool) if by_set is None else by_set, CATEGORICAL, NUMERIC).astype(np.int8)
    n_codes = np.where(kinds != NUMERIC, np.nan_to_num(np.nanmax(X, axis=0)).astype(np.int64) + 1, 0)
    codes, values = bin_matrix(X, max_bins=max_bins, weights=weights, n_codes=n_codes)
    spec = Spec(
        variants=(params,),
        custom_criteria=(given["criterion"] if callable(given["criterion"]) else None,),
        encodings=("sets",),
        max_features=None,
        min_weight_fraction_leaf=given["min_weight_fraction_leaf"],
        balanced_subsample=given["class_weight"] == "balanced_subsample",
        sampler=sampler,
        weights=weights,
        numbers=range(1000),
    )
    coding = SimpleNamespace(values=values, kinds=kinds, rates=None)
    growth = Growth.of(spec, coding, len(labels), int(labels.max()) + 1)
    return growth, Part(codes, labels, weights, sampler)
