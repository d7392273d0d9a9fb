"""Models that commands read, and what they say of rows."""

from pathlib import Path
from typing import Any

from aucforest.estimators import load


def read_model(file: Path, jobs: int | None = None) -> Any:
    """Read a model file, to be run in some threads."""
    if not file.exists():
        raise ValueError(f"there is no file {file}")
    if file.is_dir():
        raise ValueError(f"{file} is a folder, not a model file")
    model = load(file)
    return model.set_params(n_jobs=jobs) if "n_jobs" in model.get_params() else model
