"""Warnings that name the line which called the package."""

import sys
import warnings

# sklearn and contextlib decorate functions of aucforest; joblib, concurrent and threading call them in threads.
_SKIPPED_PACKAGES = {"aucforest", "sklearn", "joblib", "concurrent", "threading", "contextlib"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the location of the innermost line that is not in one of _SKIPPED_PACKAGES."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _SKIPPED_PACKAGES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
