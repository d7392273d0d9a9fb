"""Models that commands read, and what they say of rows."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from aucforest.estimators import load
from aucforest.estimators._thresholds import decide


def read_model(file: Path, jobs: int | None = None) -> Any:
    """Read a model file, to be run in some threads."""
    if not file.exists():
        raise ValueError(f"there is no file {file}")
    if file.is_dir():
        raise ValueError(f"{file} is a folder, not a model file")
    model = load(file)
    return model.set_params(n_jobs=jobs) if "n_jobs" in model.get_params() else model


def labels_of(model: Any, X: Any, proba: NDArray[Any]) -> NDArray[Any]:
    """Return the labels that go with class probabilities; a forest need not be walked again for them."""
    if hasattr(model, "threshold_"):
        labels: NDArray[Any] = model.classes_[decide(proba, model.threshold_)]
        return labels
    return model.predict(X)
