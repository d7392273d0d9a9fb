"""Look at forests: comparisons of split criteria."""

from aucforest.inspection.compare import compare_criteria
from aucforest.inspection.comparison import ComparisonRow, CriteriaComparison

__all__ = ["ComparisonRow", "CriteriaComparison", "compare_criteria"]
