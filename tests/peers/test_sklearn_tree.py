"""scikit-learn's tests of trees."""

from tests.peers.stand_ins import SKLEARN
from tests.peers.suite import (
    ATTRIBUTE,
    PARAMETER,
    REGRESSOR,
    SEVERAL_TARGETS,
    SPARSE_ONLY,
    UNRELATED,
    WORDING,
    adopt,
    deliberate,
)

LEFT_OUT = {
    REGRESSOR: (
        "*Regressor*",
        "test_absolute_error_accurately_predicts_weighted_median",
        "test_decision_path_hardcoded",
        "test_empty_leaf_infinite_threshold",
        "test_error",  # its parts for classifiers pass before
        "test_friedman_mse_deprecation",
        "test_importances_gini_equal_squared_error",
        "test_mae",
        "test_missing_value_errors",
        "test_missing_values_best_splitter_on_equal_nodes_no_missing",
        "test_missing_values_random_splitter_on_equal_nodes_no_missing",
        "test_poisson_*",
        "test_random_splitter_missing_values_uses_non_missing_min_max",
        "test_regression_extra_tree_missing_values_toy",
        "test_splitting_with_missing_values",
    ),
    UNRELATED: (
        "test_absolute_errors_precomputation_function",
        "test_arrayrepr",
        "test_check_*",
        "test_criterion_copy",
        "test_numerical_stability",
        "test_realloc",
        "test_splitter_serializable",
    ),
    SPARSE_ONLY: ("test_sparse_input",),
    SEVERAL_TARGETS: (
        "test_class_weights",
        "test_classes_shape",
        "test_min_weight_fraction_leaf_on_sparse_input",
        "test_min_weight_fraction_leaf_with_min_samples_leaf_on_sparse_input",
        "test_multioutput",
    ),
    PARAMETER: ("test_min_impurity_decrease",),
    deliberate("trees are not pruned afterwards", TypeError, message="^Argument 'orig_tree' has incorrect type"): (
        "test_build_pruned_tree_*",
    ),
    ATTRIBUTE: ("test_max_features", "test_prune_tree_classifier_are_subtrees"),
    deliberate("y of a single class is refused", ValueError, message="^y has only one class"): (
        "test_prune_single_node_tree",
        "test_pure_set",
        "test_sample_weight",
    ),
    deliberate("a cut that gains nothing is no cut"): ("test_with_only_one_non_constant_features", "test_xor"),
    deliberate("values are compared as they are given, in float64; those that differ at all can be parted"): (
        "test_almost_constant_feature",
        "test_big_input",
    ),
    deliberate("max_leaf_nodes is a limit, memory is taken by the leaves that there can be"): (
        "test_huge_allocations",
    ),
    WORDING: ("test_class_weight_errors",),
}
globals().update(adopt("scikit-learn", "1.9", "sklearn.tree.tests.test_tree", SKLEARN))
