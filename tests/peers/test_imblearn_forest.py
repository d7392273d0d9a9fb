from tests.peers.stand_ins import IMBLEARN
from tests.peers.suite import ATTRIBUTE, PARAMETER, WORDING, adopt

LEFT_OUT = {
    PARAMETER: "test_balanced_random_forest_pruning",
    ATTRIBUTE: "test_balanced_random_forest test_balanced_random_forest_attributes",
    "classes are drawn with replacement, so that a tree sees fewer distinct rows of the rarest class": """
        test_balanced_random_forest_oob_binomial[0.1]
    """,
    WORDING: "test_balanced_random_forest_error_warning_warm_start",
}
globals().update(adopt("imbalanced-learn", "0.14", "imblearn.ensemble.tests.test_forest", IMBLEARN))
