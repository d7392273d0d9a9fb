"""Model inspection: comparison of criteria, importances, explanations, text export and plots."""

from aucforest.inspection.comparison import ComparisonRow, CriteriaComparison, compare_criteria
from aucforest.inspection.explanation import Explanation, ExplanationDisplay, Reason, explain
from aucforest.inspection.forest_displays import MixtureDisplay, OOBCurveDisplay
from aucforest.inspection.importance import ImportanceDisplay, PermutationImportance, oob_permutation_importance
from aucforest.inspection.notes import column_notes
from aucforest.inspection.trees import ForestSummary, TreeDisplay, export_text, forest_summary
from aucforest.metrics.curve_displays import ThresholdCurveDisplay

__all__ = [
    "ComparisonRow",
    "CriteriaComparison",
    "Explanation",
    "ExplanationDisplay",
    "ForestSummary",
    "ImportanceDisplay",
    "MixtureDisplay",
    "OOBCurveDisplay",
    "PermutationImportance",
    "Reason",
    "ThresholdCurveDisplay",
    "TreeDisplay",
    "column_notes",
    "compare_criteria",
    "explain",
    "export_text",
    "forest_summary",
    "oob_permutation_importance",
]
