"""Trees and forests that are grown for ranking."""

from aucforest.estimators import AUCForestClassifier, AUCTreeClassifier, LinearAUCClassifier, load
from aucforest.interop import ModelFormatError

__all__ = ["AUCForestClassifier", "AUCTreeClassifier", "LinearAUCClassifier", "ModelFormatError", "load"]

__version__ = "0.1.0"
