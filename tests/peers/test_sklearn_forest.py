from tests.peers.stand_ins import SKLEARN
from tests.peers.suite import ATTRIBUTE, PARAMETER, REGRESSOR, SEVERAL_TARGETS, WORDING, adopt

LEFT_OUT = {
    REGRESSOR: """
        *Regressor* *RandomTreesEmbedding* test_balance_property_random_forest test_distribution
        test_forest_degenerate_feature_importances test_poisson_* test_random_hasher* test_random_trees_*
    """,
    "sparse: y must be dense": "test_forest_y_sparse",
    SEVERAL_TARGETS: """
        test_class_weight_balanced_and_bootstrap_multi_output test_class_weight_errors test_classes_shape
        test_forest_classifier_oob[*-X3-y3-0.18-*] test_multioutput* test_sparse_input
    """,
    PARAMETER: "test_min_impurity_decrease",
    ATTRIBUTE: "test_class_weights_forest test_oob_not_computed_twice test_validate_y_class_weight",
    "a tree draws at most as many rows as there are": """
        test_max_samples_geq_one
    """,
    "trees get keys of the forest, so that a tree alone does not draw the same features": """
        test_estimators_samples
    """,
    "with our random numbers, 500 trees or 75 samples miss a bound that 4,000 trees meet": """
        test_forest_classifier_oob[*-X2-y2-0.65-*-RandomForestClassifier] test_importances_asymptotic
    """,
    WORDING: """
        test_classifier_error_oob_score_multiclass_multioutput test_forest_oob_score_requires_bootstrap
        test_forest_oob_warning test_max_samples_bootstrap test_warm_start_equal_n_estimators
    """,
}
globals().update(adopt("scikit-learn", "1.9", "sklearn.ensemble.tests.test_forest", SKLEARN))
