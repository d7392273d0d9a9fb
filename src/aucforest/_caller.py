"""Warnings that name the line which called the package."""

import sys
import warnings

# Calls in these packages and modules are not by the user: scikit-learn decorates `fit`, others call in threads.
_BETWEEN = {"aucforest", "sklearn", "joblib", "concurrent", "threading", "contextlib"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the location of the innermost line that is not in this package, scikit-learn or joblib."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
