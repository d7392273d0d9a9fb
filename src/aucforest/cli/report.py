"""``aucforest report``: a page on a model."""

import sys
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from aucforest.cli._inputs import Labelled, can_read_again, open_table, read_columns, read_for_model, read_model
from aucforest.cli._options import (
    Data,
    Jobs,
    Model,
    PositiveOfModel,
    Seed,
    Target,
    Weight,
    names_in,
    takes_read_options,
)
from aucforest.cli._outputs import check_outputs, check_suffix, positive_class
from aucforest.report import report as report_on
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions


@takes_read_options(for_model=True)
def report(
    model: Model,
    data: Data,
    target: Target,
    out: Annotated[Path, typer.Option(metavar="PAGE", help="The .html file to write.")],
    train: Annotated[
        Path | None,
        typer.Option(
            metavar="TRAIN",
            help="The training table: for out-of-bag importances, and a warning where its rows are in DATA.",
        ),
    ] = None,
    positive: PositiveOfModel = None,
    weight: Weight = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns of DATA whose values make subgroups; the model need not know them."),
    ] = None,
    intended_use: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For which decisions the model is meant; shown on the page.")
    ] = None,
    read_options: ReadOptions = DEFAULT_OPTIONS,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Write a self-contained HTML page on a model and labelled rows that it was not fitted on.

    Example: aucforest report model.aucforest test.csv --target label --train train.csv --out report.html
    """
    check_suffix("--out", out, (".html", ".htm"))
    check_outputs(out, inputs=[model, data, train])
    forest = read_model(model, jobs)
    test = read_for_model(forest, data, target, positive, weight, read_options)
    training = Labelled("", None, None)
    if train is not None:
        training = read_for_model(forest, train, target, positive, weight, read_options)
    label = f", positive: {positive_class(forest)}" if len(forest.classes_) == 2 else ""
    facts = {"Target": f"{target}{label}", "Data": data.name}
    if train is not None:
        facts["Training data"] = train.name
    page = report_on(
        forest,
        test.X,
        pd.Series(test.y, name=target),
        sample_weight=test.weight,
        X_train=training.X,
        y_train=training.y,
        sample_weight_train=training.weight,
        title=title or f"{model.name}, evaluated on {test.title}",
        facts=facts,
        intended_use=intended_use,
        by=None if by is None else _read_groups(data, names_in(by), read_options),
        n_jobs=jobs,
        random_state=seed,
        verbose=int(sys.stderr.isatty()),
    )
    page.save(out)
    typer.echo(f"report: {out}", err=True)


def _read_groups(data: Path, names: list[str], read_options: ReadOptions) -> Any:
    """Read the columns of subgroups, which need not be those of the model."""
    if not can_read_again(data):
        raise typer.BadParameter("is for files: standard input and pipes cannot be read twice", param_hint="--by")
    table = open_table(data, (), read_options)
    return read_columns(table, names).to_pandas()
