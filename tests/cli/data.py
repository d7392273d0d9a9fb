"""A table with every kind of column, and functions that call commands in this process."""

import json
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from aucforest.cli.app import app


def run(command, *arguments, columns=160, **options):
    """Return the result of a command, given as text and further arguments."""
    words = [*command.split(), *map(str, arguments)]
    # This process uses more memory than that of a command.
    with patch("aucforest.estimators.outofcore.process_memory", return_value=2**28):
        return CliRunner().invoke(app, words, env={"COLUMNS": str(columns)}, **options)


def succeed(*arguments, **options):
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


def read_json(*arguments):
    return json.loads(succeed(*arguments, "--json", "-").stdout)


def json_of(path):
    return json.loads(Path(path).read_text())


def check_refusal(result, sentence):
    """Check that a command ended with a data error, in one line that contains the sentence."""
    assert result.exit_code == 1, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: "), line
    assert sentence in line, (line, sentence)


def check_usage(result, sentence):
    """Check that a command ended with a usage error that contains the sentence."""
    assert result.exit_code == 2, result.output
    said = " ".join(result.stderr.replace("│", " ").split())
    assert sentence in said, (said, sentence)


def mixed(n=200, seed=0):
    """Return rows of numbers, text and booleans with missing values, and ids that look like numbers."""
    random = np.random.default_rng(seed)
    width, colour = random.normal(size=n), random.choice(["red", "green, dark", 'blu"e', "1"], size=n)
    label = np.where(width + (colour == "red") + random.normal(size=n) > 1, "yes", "no")
    frame = pd.DataFrame({
        "id": [f"{row:05d}" for row in range(n)], "width": width, "colour": colour,
        "count": random.integers(0, 9, size=n), "flag": random.random(n) < 0.4, "label": label,
        "weight": random.random(n).round(2) + 0.5,
    }).astype({"flag": "boolean", "count": "Int64"})  # fmt: skip
    for name in ("width", "colour", "count", "flag"):
        frame.loc[random.random(n) < 0.1, name] = None
    return frame


def frame_of(rows):
    """Return the features in types that the estimators accept."""
    flag = rows["flag"].astype(object).where(rows["flag"].notna(), None).astype("category")
    features = rows[["width", "colour", "count", "flag"]].assign(flag=flag)
    return features.astype({"colour": "category", "width": float, "count": float})
