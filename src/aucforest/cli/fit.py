"""``aucforest fit``: a forest from a labelled table."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import typer
from sklearn.base import clone

from aucforest.cli._folds import check_folds_by, describe_time_folds, split_rows, time_folds_table
from aucforest.cli._inputs import Labelled, read_labels, read_training
from aucforest.cli._options import (
    TABLE_HELP,
    TARGET_HELP,
    Criterion,
    Groups,
    Jobs,
    JsonOut,
    Positive,
    Seed,
    Separator,
    Time,
    Weight,
    names_in,
)
from aucforest.cli._outputs import (
    QUALITY,
    TABLES,
    MetricValue,
    auc_with_interval,
    check_outputs,
    check_suffix,
    console,
    describe_threshold,
    metrics_table,
    positive_class,
    probability,
    table_writer,
    write_json,
)
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.outofcore import fit_out_of_core
from aucforest.estimators.thresholds import RULES
from aucforest.fitting.plan import parse_bytes
from aucforest.inspection.comparison import resampled_mean
from aucforest.inspection.folds import make_folds, run_folds
from aucforest.inspection.scoring import METRICS
from aucforest.metrics.at_k import parse_number
from aucforest.metrics.thresholds import BOUNDS, check_bounds, decide
from aucforest.tables.csv import is_csv

# Maximum bytes of a CSV that is read into memory, where it takes up to 1 GB, unless a limit or a folder is given.
_SMALL = 2**25


def _check_bytes(memory_limit: str | None) -> str | None:
    if memory_limit is not None:
        try:
            parse_bytes(memory_limit, "--memory-limit")
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return memory_limit


def fit(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help=TABLE_HELP)],
    target: Annotated[str, typer.Option(metavar="COLUMN", help=TARGET_HELP)],
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The model file to write.")],
    positive: Positive = None,
    trees: Annotated[int, typer.Option(min=1, help="Trees of the forest.")] = 300,
    criterion: Annotated[
        Criterion, typer.Option(help="Split criterion; auto mixes all, with best and random splits.")
    ] = "auto",
    sampling: Annotated[
        Literal["bootstrap", "stratified", "balanced", "subsample"],
        typer.Option(help="How the samples of a tree are drawn."),
    ] = "bootstrap",
    splitter: Annotated[
        Literal["auto", "best", "random"], typer.Option(help="How thresholds of splits are chosen; auto mixes both.")
    ] = "auto",
    max_depth: Annotated[int | None, typer.Option(min=1, help="Maximum depth of a tree.")] = None,
    min_samples_leaf: Annotated[int, typer.Option(min=1, help="Minimum number of samples in a leaf.")] = 1,
    max_features: Annotated[
        str, typer.Option(metavar="N", help="Features considered at a split: sqrt, log2, a number or a proportion.")
    ] = "sqrt",
    class_weight: Annotated[
        Literal["none", "balanced", "balanced_subsample"], typer.Option(help="Weights of the classes.")
    ] = "none",
    shrinkage: Annotated[
        str, typer.Option(metavar="AMOUNT", help="Hierarchical shrinkage: auto (tuned out of bag), none or a number.")
    ] = "auto",
    threshold: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help=f"How probabilities become labels: {', '.join(RULES)}, argmax, or a probability. Of two classes also"
            " alerts=0.01 (at most that proportion of rows is predicted positive, or that number), precision=0.9 (the"
            " highest recall with at least that precision) and fpr=0.01 (with at most that false positive rate).",
        ),
    ] = RULES[0],
    weight: Weight = None,
    drop: Annotated[str | None, typer.Option(metavar="A,B", help="Columns that are not used as features.")] = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    validate: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Also cross-validate with N stratified folds.")
    ] = None,
    groups: Groups = None,
    time: Time = None,
    reference: Annotated[
        Path | None,
        typer.Option(metavar="OUT", help="Table to write: labels with out-of-bag predictions, for aucforest estimate."),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="BYTES", callback=_check_bytes, help="Memory beside the forest, such as 500MB; 2GiB by default."
        ),
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="Checkpoint folder; rerun the command to resume.")] = None,
    separator: Separator = None,
    json_out: JsonOut = None,
) -> None:
    """Fit a forest to a labelled table and write it to a model file.

    All other columns are features: numbers as numbers, text and booleans as categories. Values may be missing. A file
    need not fit into memory, unless it is cross-validated. With --groups the bootstrap sample of each tree holds whole
    groups, too, so that out-of-bag scores are those of new groups.

    Example: aucforest fit train.csv --target label --out model.aucforest --threshold gmean --validate 5
    """
    check_suffix("--reference", reference, TABLES)
    check_folds_by(groups, time)
    if time is not None and validate is None:
        raise typer.BadParameter("needs --validate", param_hint="--time")
    check_outputs(out, json_out, reference, inputs=[train])
    can_stream = train.is_file() and (is_csv(train) or train.suffix.lower() == ".parquet")
    is_limited = memory_limit is not None or folder is not None
    is_small = can_stream and is_csv(train) and train.stat().st_size <= _SMALL
    streams = can_stream and validate is None and (is_limited or not is_small)
    if is_limited and not streams:
        option = "--folder" if memory_limit is None else "--memory-limit"
        what = "files, without --validate" if can_stream else "files: standard input and pipes cannot be read twice"
        raise typer.BadParameter(f"is for {what}", param_hint=option)
    forest = AUCForestClassifier(
        trees,
        criterion=criterion,
        splitter=splitter,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
        max_features=_number("--max-features", max_features, "sqrt", "log2"),
        class_weight=None if class_weight == "none" else class_weight,
        shrinkage=None if shrinkage == "none" else _number("--shrinkage", shrinkage, "auto"),
        sampling=sampling,
        threshold=_rule(threshold),
        oob_score=True,
        random_state=seed,
        n_jobs=jobs,
        verbose=int(sys.stderr.isatty()),
    )
    metrics: dict[str, list[MetricValue]] = {}
    by_time: list[dict[str, Any]] = []
    if streams:
        data = read_labels(train, target, positive, weight, separator, groups=groups)
        fit_out_of_core(
            forest,
            train,
            target,
            sample_weight=weight,
            groups=groups,
            positive=data.positive,
            drop=names_in(drop),
            separator=separator,
            memory_limit=memory_limit or "2GiB",
            folder=folder,
        )
    else:
        data = read_training(train, target, positive, weight, names_in(drop), separator, groups=groups, time=time)
        if validate is not None:
            cv = split_rows(data, validate, 1, seed)
            by_time = [] if time is None or isinstance(cv, int) else describe_time_folds(data, cv)
            by = groups or time
            kind = f"{validate} folds" if by is None else f"{validate} folds by {by}"
            metrics = {kind: _cross_validate(forest, data, cv, seed)}
        forest.fit(data.X, data.y, sample_weight=data.weight, groups=data.groups)
    forest.classes_ = data.classes
    metrics = {"out of bag": [_out_of_bag(forest, data)], **metrics}
    if reference is not None:
        _write_reference(reference, forest, data, target)
    # Not useful to the users of the file: out-of-bag probabilities of the training data, and settings of this machine.
    del forest.oob_decision_function_
    forest.set_params(n_jobs=None, verbose=0)
    forest.save(out)
    counts = dict(zip(map(str, forest.classes_.tolist()), np.bincount(data.y).tolist()))
    to = console(json_out)
    to.print(metrics_table(data.title, metrics))
    if by_time:
        to.print(time_folds_table(by_time))
    to.print(_describe(forest, counts), markup=False, highlight=False)
    to.print(describe_threshold(forest, threshold), markup=False, highlight=False)
    typer.echo(f"model: {out}", err=True)
    content = {
        "data": data.title,
        "n_samples": len(data.y),
        "n_features": forest.n_features_in_,
        "class_counts": counts,
        "threshold": np.asarray(forest.threshold_).tolist(),
        "metrics": {kind: [metric._asdict() for metric in measured] for kind, measured in metrics.items()},
    }
    write_json(json_out, content | ({"time_folds": by_time} if by_time else {}))


def _describe(forest: AUCForestClassifier, counts: dict[str, int]) -> str:
    """Return a line with the numbers of rows by class and of features."""
    rows = ", ".join(f"{label} {count:,}" for label, count in counts.items())
    features = f"{forest.n_features_in_} features, {len(forest.categories_)} of them categorical"
    return f"{positive_class(forest)}{sum(counts.values()):,} rows ({rows}); {features}"


def _rule(threshold: str) -> str | float | dict[str, Any] | None:
    """Return the parameter `threshold` of the forest."""
    if threshold in RULES:
        return threshold
    key, _, bound = threshold.partition("=")
    if key in BOUNDS:
        rule = {key: _number("--threshold", bound)}
        try:
            check_bounds(rule, name="the rule")
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--threshold") from None
        return rule
    words = (*RULES, *(f"{key}=NUMBER" for key in BOUNDS), "argmax")
    return None if threshold == "argmax" else probability("--threshold", threshold, *words)


def _number(option: str, text: str, *words: str) -> str | int | float:
    """Return the value of an option that is one of some words, an integer or a float."""
    if text in words:
        return text
    try:
        return parse_number(text)
    except ValueError:
        wanted = " or ".join(filter(None, [", ".join(words), "a number"]))
        raise typer.BadParameter(f"must be {wanted}, but is {text!r}", param_hint=option) from None


def _write_reference(out: Path, forest: AUCForestClassifier, data: Labelled, target: str) -> None:
    """Write the rows that have out-of-bag probabilities: label, predicted label and probabilities."""
    proba = forest.oob_decision_function_
    seen = np.isfinite(proba[:, 0])
    columns = {target: data.classes[data.y[seen]], "prediction": data.classes[decide(proba[seen], forest.threshold_)]}
    columns |= {f"probability_{label}": column for label, column in zip(data.classes.tolist(), proba[seen].T)}
    table = pa.table(columns)
    with table_writer(out, table.schema) as write:
        write(table)
    typer.echo(f"reference: {out}", err=True)


def _cross_validate(forest: AUCForestClassifier, data: Labelled, cv: Any, seed: int) -> list[MetricValue]:
    """Return means over folds with Nadeau and Bengio's intervals."""
    random = np.random.RandomState(seed)
    folds = run_folds(
        {"forest": clone(forest).set_params(oob_score=False, verbose=0)},
        data.X,
        data.y,
        folds=make_folds(data.X, data.y, cv=cv, random_state=random),
        metrics=QUALITY,
        sample_weight=data.weight,
        groups=data.groups,
        random_state=random,
        verbose=int(sys.stderr.isatty()),
    )
    n_classes = len(data.classes)
    return [
        MetricValue(metric, *resampled_mean(folds[metric][:, 0], folds, METRICS[metric].greatest(n_classes), 0.95))
        for metric in QUALITY
    ]


def _out_of_bag(forest: AUCForestClassifier, data: Labelled) -> MetricValue:
    """Return the out-of-bag ROC AUC; for two classes with an interval that assumes independent rows."""
    if len(forest.classes_) > 2 or data.groups is not None:
        return MetricValue("roc_auc", forest.oob_score_)
    score = forest.oob_decision_function_[:, 1]
    seen = np.isfinite(score)
    weight = None if data.weight is None else data.weight[seen]
    return auc_with_interval(data.y[seen] == 1, score[seen], weight)
