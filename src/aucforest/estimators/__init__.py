"""scikit-learn estimators."""

from aucforest.estimators._model_files import load
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.linear import LinearAUCClassifier
from aucforest.estimators.refreshing import refresh
from aucforest.estimators.stacking import AUCStackingClassifier
from aucforest.estimators.tree import AUCTreeClassifier

__all__ = [
    "AUCForestClassifier",
    "AUCStackingClassifier",
    "AUCTreeClassifier",
    "LinearAUCClassifier",
    "load",
    "refresh",
]
