"""``aucforest report``: a page on one or several models."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from aucforest.cli._inputs import Labelled, LabelledColumns, can_read_again, load_model, read_for_model, read_subgroups
from aucforest.cli._options import TABLE_HELP, Jobs, PositiveOfModel, Seed, TargetColumn, Weight, takes_read_options
from aucforest.cli._outputs import check_outputs, check_suffix, positive_class
from aucforest.report import Report
from aucforest.report import report as report_on
from aucforest.report.data import read_training
from aucforest.report.html import report_on_models
from aucforest.report.model_comparison import distinct_names, join_columns, named_models
from aucforest.report.rows import ScoredRows, score_rows
from aucforest.tables.copies import STANDARD
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions


@takes_read_options(for_model=True)
def report(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL... [DATA]", help="Model files, followed by the table unless --data is given."),
    ],
    target: TargetColumn,
    out: Annotated[Path, typer.Option(metavar="PAGE", help="The .html file to write.")],
    data: Annotated[Path | None, typer.Option(metavar="DATA", help=TABLE_HELP)] = None,
    train: Annotated[
        Path | None,
        typer.Option(
            metavar="TRAIN",
            help="The training table, for out-of-bag importances, drift, and a warning if its rows are in DATA.",
        ),
    ] = None,
    positive: PositiveOfModel = None,
    weight: Weight = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns of DATA that define subgroups; they need not be features."),
    ] = None,
    intended_use: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The decisions that the model is meant for; shown on the page.")
    ] = None,
    read_options: ReadOptions = DEFAULT_OPTIONS,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Write a self-contained HTML page that evaluates one or several models on labelled rows they were not fitted on.

    Several models are compared with the first one, on the same rows: aucforest report OLD NEW --data DATA ...

    Example: aucforest report model.aucforest test.csv --target label --train train.csv --out report.html
    """
    check_suffix("--out", out, (".html", ".htm"))
    model_files, data = _models_and_data(files, data)
    check_outputs(out, inputs=[*model_files, data, train])
    names = distinct_names([file.stem for file in model_files])
    models = {name: load_model(file, jobs) for name, file in zip(names, model_files)}
    model, has_several = next(iter(models.values())), len(models) > 1
    if has_several and by is not None:
        raise typer.BadParameter("is for a report on one model", param_hint="--by")
    read_twice = {"DATA": data, "--train": train} if has_several else {}
    for option, file in read_twice.items():
        if file is not None and (file == STANDARD or file.exists()) and not can_read_again(file):
            raise typer.BadParameter("is for files: standard input and pipes cannot be read twice", param_hint=option)
    read = partial(read_for_model, named=LabelledColumns(target, positive, weight), read_options=read_options)
    label = f", positive: {positive_class(model)}" if len(model.classes_) == 2 else ""
    facts = {"Target": f"{target}{label}", "Data": data.name}
    if train is not None:
        facts["Training data"] = train.name
    options: dict[str, Any] = {"facts": facts, "intended_use": intended_use, "random_state": seed}
    if has_several:
        page = _report_on_models(named_models(models), read, target, data, train, title=title, **options)
    else:
        test, training = read(model, data), Labelled("", None, None) if train is None else read(model, train)
        page = report_on(
            model,
            test.X,
            pd.Series(test.y, name=target),
            sample_weight=test.weight,
            X_train=training.X,
            y_train=training.y,
            sample_weight_train=training.weight,
            title=title or f"{model_files[0].name}, evaluated on {test.title}",
            by=None if by is None else read_subgroups(data, by, target, read_options),
            n_jobs=jobs,
            verbose=int(sys.stderr.isatty()),
            **options,
        )
    page.save(out)
    typer.echo(f"report: {out}", err=True)


def _models_and_data(files: list[Path], data: Path | None) -> tuple[list[Path], Path]:
    """Return the model files and the table. Without --data, the last file is the table."""
    *models, last = files
    if data is not None:
        return files, data
    if not models or last.suffix == ".aucforest":
        raise typer.BadParameter(f"is missing: give the table after {last}, or with --data", param_hint="DATA")
    return models, last


def _report_on_models(
    models: dict[str, Any], read: Callable[..., Labelled], target: str, data: Path, train: Path | None, **options: Any
) -> Report:
    """Return a report on several models. Each model reads the tables with the types of its own columns."""
    scored, training = dict[str, ScoredRows](), None
    for name, model in models.items():
        test = read(model, data)
        scored[name] = score_rows(model, test.X, pd.Series(test.y, name=target), test.weight, name)
    if train is not None:
        tables = [read(model, train) for model in models.values()]
        X, first = join_columns([table.X for table in tables]), tables[0]
        training = read_training(next(iter(models.values())), X, first.y, first.weight)
    return report_on_models(scored, training, **options)
