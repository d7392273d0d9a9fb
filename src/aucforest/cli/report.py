"""``aucforest report``: a page on a model."""

from pathlib import Path
from typing import Annotated

import typer

from aucforest.cli._inputs import Labelled, read_for_model, read_model
from aucforest.cli._options import Data, Jobs, Model, Positive, Seed, Target, Weight
from aucforest.cli._outputs import check_outputs, check_suffix
from aucforest.report import report as report_on


def report(
    model: Model,
    data: Data,
    target: Target,
    out: Annotated[Path, typer.Option(metavar="PAGE", help="The .html file to write.")],
    train: Annotated[
        Path | None, typer.Option(metavar="TRAIN", help="The training table: importances are then out of bag.")
    ] = None,
    positive: Positive = None,
    weight: Weight = None,
    title: Annotated[str | None, typer.Option(help="The headline of the page.")] = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    """Write a self-contained HTML page on a model and labelled rows that it was not fitted on.

    Example: aucforest report model.aucforest test.csv --target label --train train.csv --out report.html
    """
    check_suffix("--out", out, (".html", ".htm"))
    check_outputs(out, inputs=[model, data, train])
    forest = read_model(model, jobs)
    test = read_for_model(forest, data, target, positive, weight)
    training = Labelled("", None, None) if train is None else read_for_model(forest, train, target, positive, weight)
    page = report_on(
        forest,
        test.X,
        test.y,
        sample_weight=test.weight,
        X_train=training.X,
        y_train=training.y,
        sample_weight_train=training.weight,
        title=title or f"{model.name}, judged by {test.title}",
        n_jobs=jobs,
        random_state=seed,
    )
    page.save(out)
    typer.echo(f"report: {out}", err=True)
