from tests.peers.stand_ins import SKLEARN
from tests.peers.suite import UNRELATED, WORDING, adopt, deliberate

LEFT_OUT = {
    UNRELATED: """
        *[*confusion_matrix_at_thresholds*] *[*det_curve*] *[*precision_recall_curve*]
        test_alternative_lrap_implementation test_auc test_auc_errors test_confusion_matrix_at_thresholds
        test_confusion_matrix_at_thresholds_positional_args_deprecation test_coverage_* test_dcg_* test_det_curve_*
        test_label_ranking_* test_lrap_* test_metric_at_thresholds_* test_metric_at_thresholds[*-_dummy_metric]
        test_metric_at_thresholds[*-accuracy_score] test_metric_at_thresholds[*-precision_score] test_ndcg_*
        test_precision_recall_curve_drop_intermediate test_ranking_appropriate_input_shape
        test_ranking_loss_ties_handling test_sort_inputs_and_compute_classification_thresholds_*
        test_top_k_accuracy_score*
    """,
    deliberate("average=None returns the areas of all pairs of classes"): "test_multiclass_ovo_roc_auc_toydata",
    deliberate("multi_class is 'ovo' by default"): "test_roc_auc_score_multiclass_error[multi_class?must?be*]",
    deliberate("labels may come in the order of the columns"): """
        test_roc_auc_score_multiclass_labels_error[*must?be?ordered*]
    """,
    deliberate("the greater of two labels is positive, whatever their type"): """
        test_confusion_matrix_at_thresholds_implicit_bytes_pos_label
        test_confusion_matrix_at_thresholds_implicit_pos_label
    """,
    deliberate("average precision is NaN without a positive row, and takes no matrix of labels"): """
        test_precision_recall_curve_toydata
    """,
    WORDING: """
        test_auc_score_non_binary_class test_average_precision_score_*_pos_label_errors
        test_confusion_matrix_at_thresholds_multiclass_error
        test_multiclass_ranking_metrics_raise_for_incorrect_shape_of_y_score test_roc_auc_score_multiclass_error
        test_roc_auc_score_multiclass_labels_error test_roc_curve_one_label test_roc_curve_toydata
    """,
}
globals().update(adopt("scikit-learn", "1.9", "sklearn.metrics.tests.test_ranking", SKLEARN))
