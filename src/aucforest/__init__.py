"""Trees and forests that are grown for ranking."""

from aucforest.estimators import AUCForestClassifier, AUCTreeClassifier

__all__ = ["AUCForestClassifier", "AUCTreeClassifier"]

__version__ = "0.1.0"
