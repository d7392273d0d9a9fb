"""Cross-validation folds of a table: stratified, by group, or by time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import typer
from rich.table import Table

from aucforest.cli._inputs import Labelled
from aucforest.cli._outputs import rich_table
from aucforest.columns.dates import format_moment
from aucforest.inspection.folds import Fold, make_folds, time_folds


def check_fold_options(groups: str | None, time: str | None) -> None:
    if groups is not None and time is not None:
        raise typer.BadParameter("cannot be combined with --groups", param_hint="--time")


def split_rows(data: Labelled, n_folds: int, n_repeats: int, seed: int) -> list[Fold] | int:
    """Return folds by time, folds by group, or, if there is neither column, the number of stratified folds."""
    labels = data.classes[data.y]  # for error messages, which name the classes
    if data.times is not None:
        return make_folds(data.X, labels, cv=time_folds(data.times, n_folds))
    folds = make_folds(data.X, labels, cv=n_folds, n_repeats=n_repeats, groups=data.groups, random_state=seed)
    # Stratified folds are discarded: `make_folds` only checks them, and the caller makes its own.
    return n_folds if data.groups is None else folds


def describe_time_folds(data: Labelled, folds: Sequence[Fold] | int) -> list[dict[str, Any]]:
    """Return, for folds by time, the range of times and the numbers of rows of each training and test set."""
    if data.times is None or isinstance(folds, int):
        return []
    described, classes = [], list(map(str, data.classes.tolist()))
    as_text = format_moment if data.times.dtype.kind == "M" else str
    for number, fold in enumerate(folds):
        content: dict[str, Any] = {"fold": number}
        for part, rows in zip(("train", "test"), fold):
            times, counts = data.times[rows], np.bincount(data.y[rows], minlength=len(classes)).tolist()
            content |= {f"{part}_from": as_text(times.min()), f"{part}_to": as_text(times.max())}
            content |= {f"n_{part}": len(rows), f"{part}_class_counts": dict(zip(classes, counts))}
        described.append(content)
    return described


def time_folds_table(described: list[dict[str, Any]]) -> Table:
    """Return a table of the folds. With two classes, it has the numbers of positive rows."""
    headings, has_positive = ["fold"], len(described[0]["train_class_counts"]) == 2
    for part in ("training", "test"):
        headings += [part, ">rows", *([">positives"] if has_positive else [])]
    rows = []
    for content in described:
        cells = [str(content["fold"])]
        for part in ("train", "test"):
            cells += [f"{content[f'{part}_from']} to {content[f'{part}_to']}", f"{content[f'n_{part}']:,}"]
            *_, n_positive = content[f"{part}_class_counts"].values()
            cells += [f"{n_positive:,}"] if has_positive else []
        rows.append(cells)
    return rich_table(None, headings, rows)
