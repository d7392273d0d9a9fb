"""Recorded outputs of the peer and closed forms: see tests/data/README.md."""

import json
from functools import cache
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


@cache
def load(name):
    """Return a recorded file."""
    return json.loads((DATA / f"{name}.json").read_text())


def binary_cases():
    """Return the twelve unit cases."""
    return load("cbpe_unit")["binary"]
