"""``aucforest fit``: a forest from a labelled table."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from sklearn.base import clone

from aucforest.cli._inputs import Labelled, read_labels, read_training
from aucforest.cli._options import TARGET_HELP, Criterion, Jobs, JsonOut, Positive, Seed, Weight, names_in
from aucforest.cli._outputs import (
    QUALITY,
    TABLES,
    MetricValue,
    auc_with_interval,
    check_outputs,
    console,
    metrics_table,
    positive_class,
    write_json,
)
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.outofcore import fit_out_of_core
from aucforest.estimators.thresholds import RULES
from aucforest.inspection.comparison import resampled_mean
from aucforest.inspection.folds import run_folds
from aucforest.inspection.scoring import METRICS

# Bytes of a CSV that is read once into memory, where it takes up to 1 GB, unless a limit or a folder is given.
_SMALL = 2**25


def fit(
    train: Annotated[
        Path, typer.Argument(metavar="TRAIN", help="A .csv or .parquet table; - is CSV on standard input.")
    ],
    target: Annotated[str, typer.Option(metavar="COLUMN", help=TARGET_HELP)],
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The model file to write.")],
    positive: Positive = None,
    trees: Annotated[int, typer.Option(min=1, help="Trees of the forest.")] = 300,
    criterion: Annotated[
        Criterion, typer.Option(help="Split criterion; auto mixes all, with best and random splits.")
    ] = "auto",
    sampling: Annotated[
        Literal["bootstrap", "stratified", "balanced", "subsample"], typer.Option(help="How trees draw rows.")
    ] = "bootstrap",
    threshold: Annotated[
        str | None,
        typer.Option(metavar="RULE", help=f"How probabilities become labels: {', '.join(RULES)}, or a probability."),
    ] = None,
    weight: Weight = None,
    drop: Annotated[str | None, typer.Option(metavar="A,B", help="Columns that are not learned from.")] = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    validate: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Cross-validate in N stratified folds, too.")
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option(metavar="BYTES", help="Memory beside the forest, such as 500MB; 2GiB by default.")
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="What is done is kept here, to go on after a kill.")] = None,
    json_out: JsonOut = None,
) -> None:
    """Fit a forest to a labelled table and write it to a model file.

    All other columns are learned from: numbers as numbers, text and flags as categories. Values may be missing. A
    file need not fit into memory, unless it is cross-validated.

    Example: aucforest fit train.csv --target label --out model.aucforest --threshold gmean --validate 5
    """
    check_outputs(out, json_out, inputs=[train])
    can_stream = train.is_file() and train.suffix.lower() in TABLES
    is_limited = memory_limit is not None or folder is not None
    is_small = can_stream and train.suffix.lower() == ".csv" and train.stat().st_size <= _SMALL
    streams = can_stream and validate is None and (is_limited or not is_small)
    if is_limited and not streams:
        option = "--folder" if memory_limit is None else "--memory-limit"
        what = "files, without --validate" if can_stream else "files: standard input and pipes cannot be read twice"
        raise typer.BadParameter(f"is for {what}", param_hint=option)
    forest = AUCForestClassifier(
        trees,
        criterion=criterion,
        sampling=sampling,
        threshold=_rule(threshold),
        oob_score=True,
        random_state=seed,
        n_jobs=jobs,
        verbose=int(sys.stderr.isatty()),
    )
    metrics: dict[str, list[MetricValue]] = {}
    if streams:
        read_labels(train, target, positive)  # refuses a quantity; not kept, since memory may be short
        fit_out_of_core(
            forest,
            train,
            target,
            sample_weight=weight,
            positive=positive,
            drop=names_in(drop),
            memory_limit=memory_limit or "2GiB",
            folder=folder,
        )
        data = read_labels(train, target, positive, weight)
    else:
        data = read_training(train, target, positive, weight, names_in(drop))
        if validate is not None:
            metrics = {f"{validate} folds": _cross_validate(forest, data, validate, seed)}
        forest.fit(data.X, data.y, sample_weight=data.weight)
    metrics = {"out of bag": [_out_of_bag(forest, data)], **metrics}
    # What is of no use to whoever gets the file: as large as the training data, and how many cores there are here.
    del forest.oob_decision_function_
    forest.set_params(n_jobs=None, verbose=0).save(out)
    counts = dict(zip(map(str, forest.classes_.tolist()), np.unique(data.y, return_counts=True)[1].tolist()))
    to = console(json_out)
    to.print(metrics_table(data.title, metrics))
    to.print(_describe(forest, counts), markup=False, highlight=False)
    typer.echo(f"model: {out}", err=True)
    content = {
        "data": data.title,
        "n_samples": len(data.y),
        "n_features": forest.n_features_in_,
        "class_counts": counts,
        "threshold": np.asarray(forest.threshold_).tolist(),
        "figures": {kind: [metric._asdict() for metric in measured] for kind, measured in metrics.items()},
    }
    write_json(json_out, content)


def _describe(forest: AUCForestClassifier, counts: dict[str, int]) -> str:
    """Return the rows by class, the columns and the threshold as a line."""
    rows = ", ".join(f"{label} {count:,}" for label, count in counts.items())
    columns = f"{forest.n_features_in_} columns, {len(forest.categories_)} of them categories"
    threshold, is_number = forest.threshold_, isinstance(forest.threshold_, float)
    least = f"; {forest.classes_[1]} from {threshold:.4g} on" if is_number else ""
    return f"{positive_class(forest)}{sum(counts.values()):,} rows ({rows}); {columns}{least}"


def _rule(threshold: str | None) -> str | float | None:
    """Return what `threshold` of the forest takes."""
    if threshold is None or threshold in RULES:
        return threshold
    try:
        if 0.0 <= float(threshold) <= 1.0:
            return float(threshold)
    except ValueError:
        pass
    wanted = f"must be {', '.join(RULES)} or a probability, got {threshold!r}"
    raise typer.BadParameter(wanted, param_hint="--threshold")


def _cross_validate(forest: AUCForestClassifier, data: Labelled, n_folds: int, seed: int) -> list[MetricValue]:
    """Return means over folds with Nadeau and Bengio's intervals."""
    folds = run_folds(
        {"forest": clone(forest).set_params(oob_score=False, verbose=0)},
        data.X,
        data.y,
        cv=n_folds,
        n_repeats=1,
        metrics=QUALITY,
        sample_weight=data.weight,
        random_state=seed,
        verbose=int(sys.stderr.isatty()),
    )
    n_classes = len(np.unique(data.y))
    return [
        MetricValue(metric, *resampled_mean(folds[metric][:, 0], folds, METRICS[metric].greatest(n_classes), 0.95))
        for metric in QUALITY
    ]


def _out_of_bag(forest: AUCForestClassifier, data: Labelled) -> MetricValue:
    """Return the out-of-bag ROC AUC, of two classes with an interval."""
    if len(forest.classes_) > 2:
        return MetricValue("roc_auc", forest.oob_score_)
    score = forest.oob_decision_function_[:, 1]
    seen = np.isfinite(score)
    weight = None if data.weight is None else data.weight[seen]
    return auc_with_interval(data.y[seen] == forest.classes_[1], score[seen], weight)
