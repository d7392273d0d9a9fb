"""``aucforest compare``: cross-validate split criteria and the stack on the same folds."""

import math
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from aucforest.cli import _options, _outputs
from aucforest.cli._folds import check_fold_options, describe_time_folds, split_rows, time_folds_table
from aucforest.cli._inputs import Labelled, LabelledColumns, read_training_table
from aucforest.cli._options import names_in, takes_read_options, validator
from aucforest.columns.categorical import read_table
from aucforest.columns.dates import find_dates
from aucforest.columns.expansion import n_added
from aucforest.datasets import load_abalone
from aucforest.inspection import ComparisonRow, CriteriaComparison, compare_criteria
from aucforest.inspection.comparison import STACK, decimals
from aucforest.inspection.scoring import find_metric
from aucforest.tables.kinds import nearest
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions
from aucforest.tree.criteria.table import CRITERIA

SIGNIFICANT = 0.05  # smaller p-values are significant


def _check_criteria(criteria: str) -> None:
    possible = ("auto", STACK, *CRITERIA)
    for name in names_in(criteria):
        if name not in possible:
            raise ValueError(f"{name!r} is not among {', '.join(possible)}{nearest(name, possible)}")


@takes_read_options()
def compare(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help=f"{_options.TABLE_HELP} Default: the abalone data; positive are 18 rings or more."
        ),
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help=_options.TARGET_HELP)] = None,
    positive: _options.Positive = None,
    criteria: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            callback=validator(_check_criteria),
            help=f"Split criteria ({', '.join(CRITERIA)}), auto (a forest of several criteria), or stack (a stack"
            " with that forest); gini is always included.",
        ),
    ] = "auto,auc,gini",
    splitter: Annotated[
        Literal["auto", "best", "random"],
        typer.Option(
            help="Best or random thresholds; auto means best for a single criterion, and both for the criterion auto."
        ),
    ] = "auto",
    weight: _options.Weight = None,
    drop: _options.Drop = None,
    categorical: _options.Categorical = None,
    read_options: ReadOptions = DEFAULT_OPTIONS,
    trees: Annotated[int, typer.Option(min=1, help="Number of trees of each forest.")] = 100,
    folds: Annotated[int, typer.Option(min=2, help="Number of stratified folds.")] = 5,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Number of repeats of the cross-validation; 3 by default, 1 with --time.")
    ] = None,
    groups: _options.Groups = None,
    time: _options.Time = None,
    seed: _options.Seed = 0,
    jobs: _options.Jobs = -1,
    json_out: _options.JsonOut = None,
    plot_out: _options.PlotOut = None,
) -> None:
    """Compare split criteria by cross-validation on the same folds and seeds, with a significance test against Gini.

    The stack that "aucforest fit --model stack" fits can be compared, too: --criteria auto,stack,gini.

    Example: aucforest compare train.csv --target label --criteria auc,gini,hellinger --plot comparison.png
    """
    _outputs.check_suffix("--plot", plot_out, _outputs.PICTURES)
    if file is None and (target or positive or weight or drop or categorical or groups or time):
        names = "--target, --positive, --weight, --drop, --categorical, --groups and --time"
        raise typer.BadParameter(f"{names} need a FILE")
    check_fold_options(groups, time)
    if time is not None and repeats not in (None, 1):
        raise typer.BadParameter("folds by time cannot be repeated", param_hint="--repeats")
    if file is not None and target is None:
        raise typer.BadParameter("must name the column of class labels", param_hint="--target")
    _outputs.check_outputs(json_out, plot_out, inputs=[file])
    if file is not None and target is not None:
        columns = LabelledColumns(
            target, positive, weight, groups, names_in(drop), time, categorical=names_in(categorical)
        )
        data = read_training_table(file, columns, read_options)
    else:
        X, rings = load_abalone(return_X_y=True)
        data = Labelled("abalone, rings >= 18", X, (rings >= 18).astype(np.uint16), None, np.array([False, True]))
    cv = split_rows(data, folds, repeats or 3, seed)
    fold_times = describe_time_folds(data, cv)
    comparison = compare_criteria(
        data.X,
        data.y,
        criteria=names_in(criteria),
        cv=cv,
        n_repeats=(repeats or 3) if isinstance(cv, int) else 1,
        sample_weight=data.weight,
        random_state=seed,
        n_jobs=jobs,
        n_estimators=trees,
        splitter=splitter,
        verbose=int(sys.stderr.isatty()),
    )
    console = _outputs.make_console(json_out)
    console.print(Text(comparison.verdict()))
    for is_cost in (False, True):
        console.print(_as_table(data, comparison, is_cost))
    if fold_times:
        console.print(time_folds_table(fold_times))
    _outputs.write_json(json_out, _as_json(data, comparison), optional={"time_folds": fold_times})
    if plot_out is not None:
        figure = comparison.plot()
        figure.suptitle(data.title)
        _outputs.write_picture(plot_out, figure)


def _as_table(data: Labelled, comparison: CriteriaComparison, is_cost: bool) -> Table:
    """Return a table of fit times and tree sizes if `is_cost`, else of the other metrics; criteria are columns."""
    caption = f"Means of {len(comparison.folds)} folds with 95 % intervals."
    if not is_cost:
        caption += (
            " p: corrected resampled t-test against gini, adjusted for the number of criteria (Holm); significant"
            f" differences (p < {SIGNIFICANT}) are green where better and red where worse."
        )
    title = "fit time and sizes of trees" if is_cost else data.title
    summary = comparison.summary()
    rows: list[list[str | Text]] = [
        [find_metric(metric).title, *(_cell(row) for row in summary if row.metric == metric)]
        for metric in comparison.metrics
        if (find_metric(metric).kind == "cost") == is_cost
    ]
    return _outputs.rich_table(title, ["", *(f">{name}" for name in comparison.criteria)], rows, caption=caption)


def _cell(row: ComparisonRow) -> Text:
    """Return the mean, its interval and the p-value, each on a line."""
    digits = decimals(row.low, row.high, row.mean)
    interval = "" if math.isnan(row.low) else f"{row.low:,.{digits}f} to {row.high:,.{digits}f}"
    text = "\n".join(filter(None, [f"{row.mean:,.{digits}f}", interval, row.pvalue_text]))
    if row.pvalue_text and row.adjusted_pvalue < SIGNIFICANT:
        return Text(text, "green" if row.is_better else "red")
    return Text(text)


def _as_json(data: Labelled, comparison: CriteriaComparison) -> dict[str, Any]:
    return {
        "data": data.title,
        "n_samples": len(data.y),
        "n_columns": data.X.shape[1],
        "n_features": data.X.shape[1] + n_added(find_dates(read_table(data.X), "auto")),
        "class_counts": dict(zip(map(str, data.classes.tolist()), np.bincount(data.y).tolist())),
        "verdict": comparison.verdict(),
        "summary": [row._asdict() for row in comparison.summary()],
        "folds": [dict(zip(comparison.folds.dtype.names or (), fit)) for fit in comparison.folds.ravel().tolist()],
    }
