"""Decision trees and random forests for ranking, as scikit-learn classifiers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aucforest import datasets, distributed, inspection, losses, metrics, monitoring, report
    from aucforest.estimators import (
        AUCForestClassifier,
        AUCStackingClassifier,
        AUCTreeClassifier,
        LinearAUCClassifier,
        load,
        refresh,
    )
    from aucforest.persistence import ModelFormatError

__all__ = [
    "AUCForestClassifier",
    "AUCStackingClassifier",
    "AUCTreeClassifier",
    "LinearAUCClassifier",
    "ModelFormatError",
    "datasets",
    "distributed",
    "inspection",
    "load",
    "losses",
    "metrics",
    "monitoring",
    "refresh",
    "report",
]

__version__ = "0.2.0"

_SUBPACKAGES = ("datasets", "distributed", "inspection", "losses", "metrics", "monitoring", "report")


def __getattr__(name: str) -> Any:
    """Import a class or subpackage at its first use: importing scikit-learn and scipy is slow."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _SUBPACKAGES:
        return import_module(f"{__name__}.{name}")
    subpackage = "persistence" if name == "ModelFormatError" else "estimators"
    value = globals()[name] = getattr(import_module(f"{__name__}.{subpackage}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
