from tests.peers.stand_ins import SKLEARN
from tests.peers.suite import WORDING, adopt

LEFT_OUT = {
    "average=None returns the areas of all pairs of classes": "test_multiclass_ovo_roc_auc_toydata",
    "multi_class is 'ovo' by default": "test_roc_auc_score_multiclass_error[multi_class?must?be*]",
    "labels may come in the order of the columns": """
        test_roc_auc_score_multiclass_labels_error[*must?be?ordered*]
    """,
    "the greater of two labels is positive, whatever their type": """
        test_confusion_matrix_at_thresholds_implicit_*pos_label[*roc_curve]
    """,
    "average precision is NaN without a positive row, and takes no matrix of labels": """
        test_precision_recall_curve_toydata
    """,
    WORDING: """
        test_auc_score_non_binary_class test_average_precision_score_*_pos_label_errors
        test_confusion_matrix_at_thresholds_multiclass_error[roc_curve]
        test_multiclass_ranking_metrics_raise_for_incorrect_shape_of_y_score test_roc_auc_score_multiclass_error
        test_roc_auc_score_multiclass_labels_error test_roc_curve_one_label test_roc_curve_toydata
    """,
}
globals().update(adopt("scikit-learn", "1.9", "sklearn.metrics.tests.test_ranking", SKLEARN))
