"""The counterparts of parameters of other libraries, for the error message about an unknown parameter."""

from collections.abc import Iterable

from sklearn.base import BaseEstimator

_FOREIGN_NAMES = {
    "n_estimators": ("n_trees", "num_trees", "ntree", "num_iterations", "num_boost_round", "iterations"),
    "max_depth": ("depth",),
    "max_leaf_nodes": ("num_leaves", "max_leaves"),
    "min_samples_leaf": ("min_data_in_leaf", "min_child_samples", "nodesize"),
    "min_weight_fraction_leaf": ("min_child_weight", "min_sum_hessian_in_leaf"),
    "max_features": ("mtry", "feature_fraction", "colsample_bytree", "colsample_bylevel", "colsample_bynode"),
    "max_samples": ("subsample", "bagging_fraction", "sample_fraction"),
    "sampling": ("sampling_strategy", "replacement", "replace"),
    "class_weight": ("scale_pos_weight", "is_unbalance", "class_weights"),
    "criterion": ("objective",),
    "max_bins": ("max_bin", "nbins", "border_count"),
    "monotonic_cst": ("monotone_constraints", "monotonic_constraints"),
    "categorical_features": ("categorical_feature", "cat_features"),
    "n_jobs": ("num_threads", "nthread", "thread_count"),
    "random_state": ("seed", "random_seed"),
    "verbose": ("verbosity",),
    # scikit-learn multiplies the gain by the proportion of samples in the node, but `min_gain` does not.
    "min_gain": ("min_impurity_decrease", "min_impurity_split", "min_split_gain", "min_gain_to_split", "gamma"),
    "shrinkage": ("reg_alpha", "reg_lambda", "lambda_l1", "lambda_l2", "l2_leaf_reg"),
}
_COUNTERPARTS = {foreign: ours for ours, names in _FOREIGN_NAMES.items() for foreign in names}
_WITHOUT_COUNTERPART = {
    "ccp_alpha": "trees are not pruned, but max_depth, max_leaf_nodes and min_samples_leaf limit their size",
    "learning_rate": "trees are not boosted, but grown independently of each other",
    "eta": "trees are not boosted, but grown independently of each other",
    "early_stopping_rounds": "trees are not boosted, and more of them do no harm",
}


def describe_foreign(estimator: type[BaseEstimator], names: Iterable[str]) -> str | None:
    """Return a message about the first name that is a parameter of another library only; None if there is none."""
    for name in names:
        ours, reason = _COUNTERPARTS.get(name), _WITHOUT_COUNTERPART.get(name)
        if ours is None and reason is None:
            continue
        parameters = estimator._get_param_names()
        if name not in parameters and (ours is None or ours in parameters):
            return f"{estimator.__name__} has no parameter {name!r}: {reason or f'use {ours}, see its documentation'}"
    return None
