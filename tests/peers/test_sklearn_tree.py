from tests.peers import suite
from tests.peers.stand_ins import SKLEARN

LEFT_OUT = {
    suite.REGRESSOR: """
        *Regressor* test_absolute_error_accurately_predicts_weighted_median test_decision_path_hardcoded
        test_empty_leaf_infinite_threshold test_error test_friedman_mse_deprecation
        test_importances_gini_equal_squared_error test_mae test_missing_value_errors
        test_missing_values_best_splitter_on_equal_nodes_no_missing
        test_missing_values_random_splitter_on_equal_nodes_no_missing test_poisson_*
        test_random_splitter_missing_values_uses_non_missing_min_max test_regression_extra_tree_missing_values_toy
        test_splitting_with_missing_values
    """,
    suite.SEVERAL_TARGETS: """
        test_class_weights test_classes_shape test_min_weight_fraction_leaf_on_sparse_input
        test_min_weight_fraction_leaf_with_min_samples_leaf_on_sparse_input test_multioutput
    """,
    suite.PARAMETER: "test_min_impurity_decrease",
    "trees are not pruned afterwards": "test_build_pruned_tree_*",
    suite.ATTRIBUTE: "test_max_features test_prune_tree_classifier_are_subtrees",
    "y of a single class is refused": """
        test_prune_single_node_tree test_pure_set test_sample_weight
    """,
    "a cut that gains nothing is no cut": "test_with_only_one_non_constant_features test_xor",
    "values are compared in float64, so that the smallest difference is enough for a split": """
        test_almost_constant_feature test_big_input
    """,
    "memory is taken for the leaves there can be, not for max_leaf_nodes": "test_huge_allocations",
    suite.WORDING: "test_class_weight_errors",
}
globals().update(suite.adopt("scikit-learn", "1.9", "sklearn.tree.tests.test_tree", SKLEARN))
