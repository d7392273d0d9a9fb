from tests.peers.stand_ins import SKLEARN
from tests.peers.suite import REGRESSOR, WORDING, adopt

LEFT_OUT = {
    REGRESSOR: "*Regressor* test_assert_*d_reg_tree_children_monotonic_bounded",
    WORDING: "test_bad_monotonic_cst_raises test_multiclass_raises test_multiple_output_raises",
}
globals().update(adopt("scikit-learn", "1.9", "sklearn.tree.tests.test_monotonic_tree", SKLEARN))
