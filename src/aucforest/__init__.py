"""Trees and forests that are grown for ranking."""

from aucforest.estimators import AUCForestClassifier, AUCTreeClassifier, LinearAUCClassifier

__all__ = ["AUCForestClassifier", "AUCTreeClassifier", "LinearAUCClassifier"]

__version__ = "0.1.0"
