"""``aucforest fit``: fit a forest or a stack to a labelled table."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer
from rich.text import Text
from sklearn.base import clone

from aucforest._memory import machine_memory, parse_bytes
from aucforest.cli import _options, _outputs
from aucforest.cli._folds import check_fold_options, describe_time_folds, split_rows, time_folds_table
from aucforest.cli._inputs import Labelled, LabelledColumns, read_training_table
from aucforest.cli._options import RULE_HELP, names_in, number_or_word, parse_rule, rule_for, takes_read_options
from aucforest.cli._outputs import QUALITY, MetricValue
from aucforest.columns.categorical import repeated
from aucforest.columns.dates import PARTS
from aucforest.columns.target_rates import ENCODINGS
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.estimators.outofcore import fit_source
from aucforest.estimators.stacking import AUCStackingClassifier
from aucforest.estimators.threshold_rules import RULES
from aucforest.fitting.on_disk import FeatureBatches
from aucforest.fitting.target import Target
from aucforest.inspection.comparison import resampled_mean
from aucforest.inspection.folds import LabelledRows, make_folds, run_folds
from aucforest.inspection.scoring import METRICS
from aucforest.metrics.confidence import auc_with_interval
from aucforest.metrics.validation import count_classes, positive_last, recode
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions

_Model = AUCForestClassifier | AUCStackingClassifier
# Text files of more than _MOST_BYTES, or of more than the memory divided by _MEMORY_DIVISOR, are read in batches. In
# memory, a file of one-digit values takes about 30 times its size.
_MOST_BYTES, _MEMORY_DIVISOR = 2**26, 64


@takes_read_options()
def fit(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help=_options.TABLE_HELP)],
    target: Annotated[str, typer.Option(metavar="COLUMN", help=_options.TARGET_HELP)],
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The model file to write.")],
    positive: _options.Positive = None,
    estimator: Annotated[
        Literal["forest", "stack"],
        typer.Option(
            "--model",
            help="A forest, or a stack: this forest, one fitted to its residuals, boosted trees and an additive model."
            " Options of the forest apply to both.",
        ),
    ] = "forest",
    trees: Annotated[int, typer.Option(min=1, help="Trees of the forest.")] = 300,
    criterion: Annotated[
        _options.Criterion, typer.Option(help="Split criterion; auto mixes all, with best and random splits.")
    ] = "auto",
    sampling: Annotated[
        Literal["bootstrap", "stratified", "balanced", "subsample", "half-samples"],
        typer.Option(help="How the samples of a tree are drawn; predict --interval needs half-samples."),
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
    threshold: Annotated[str, typer.Option(metavar="RULE", help=RULE_HELP)] = RULES[0],
    categorical_encoding: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="How columns of many categories are encoded: sets (of categories), rates (the class frequencies of"
            " each category), interactions (rates, also of pairs of columns), several of these, or auto for all"
            " that help.",
        ),
    ] = "auto",
    date_parts: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help=f"Features of dates: auto (time, month, day of week, hour), none, or some of {', '.join(PARTS)}.",
        ),
    ] = "auto",
    weight: _options.Weight = None,
    drop: _options.Drop = None,
    categorical: _options.Categorical = None,
    seed: _options.Seed = 0,
    jobs: _options.Jobs = -1,
    validate: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Also cross-validate with N stratified folds.")
    ] = None,
    groups: _options.Groups = None,
    time: _options.Time = None,
    reference: _options.Reference = None,
    keep: Annotated[
        str | None,
        typer.Option(
            help="Columns to copy to the reference, such as features and times for aucforest estimate.", metavar="A,B"
        ),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="BYTES",
            callback=_options.validator(lambda limit: parse_bytes(limit, "--memory-limit")),
            help="Most memory of the process, except the forest, such as 4GiB; 2GiB by default.",
        ),
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="Checkpoint folder; rerun the command to resume.")] = None,
    read_options: ReadOptions = DEFAULT_OPTIONS,
    json_out: _options.JsonOut = None,
) -> None:
    """Fit a forest or a stack to a labelled table and write it to a model file.

    All other columns are features: numbers as numbers, text and booleans as categories, dates by their parts. Values
    may be missing. Suspicious columns are named on standard error: numbers or dates that are read as text, identifiers,
    constants, and columns that alone separate the classes. A file need not fit into memory, unless it is
    cross-validated or the model is a stack. With --groups, bootstrap samples contain whole groups, so that out-of-bag
    scores estimate performance on new groups.

    Example: aucforest fit train.csv --target label --out model.aucforest --threshold gmean --validate 5
    """
    check_fold_options(groups, time)
    if time is not None and validate is None:
        raise typer.BadParameter("needs --validate", param_hint="--time")
    if keep is not None and reference is None:
        raise typer.BadParameter("needs --reference", param_hint="--keep")
    _outputs.check_model_outputs(out, reference, json_out, [train])
    batch_option = "--memory-limit" if memory_limit is not None else "--folder" if folder is not None else None
    in_batches = _reads_batches(train, estimator == "stack", validate is not None, batch_option)
    forest = AUCForestClassifier(
        trees,
        criterion=criterion,
        splitter=splitter,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
        max_features=number_or_word("--max-features", max_features, "sqrt", "log2"),
        class_weight=None if class_weight == "none" else class_weight,
        shrinkage=None if shrinkage == "none" else number_or_word("--shrinkage", shrinkage, "auto"),
        sampling=sampling,
        date_parts=_parse_names("--date-parts", date_parts, PARTS, {"auto": "auto", "none": None}),
        categorical_encoding=_parse_names("--categorical-encoding", categorical_encoding, ENCODINGS, {"auto": "auto"}),
        random_state=seed,
        n_jobs=jobs,
    )
    oob_params: dict[str, Any] = {"threshold": parse_rule(threshold), "oob_score": True}
    model = AUCStackingClassifier(forest, **oob_params) if estimator == "stack" else forest.set_params(**oob_params)
    kept = [name for name in names_in(keep) if name != target]
    columns = LabelledColumns(target, positive, weight, groups, names_in(drop), time, kept, names_in(categorical))
    data = read_training_table(train, columns, read_options, in_batches=in_batches)
    rule_for(model.threshold, len(data.classes), 1)  # only for its errors, before the cross-validation
    if reference is not None:
        _outputs.check_reference([*kept, target], data.classes, train)
    validated, time_folds = ({}, []) if validate is None else _cross_validate(model, data, columns, validate, seed)
    forest.set_params(verbose=int(sys.stderr.isatty()))
    _fit(model, data, columns, memory_limit, folder)
    metrics = {"out of bag": [_oob_auc(model, data)]} | validated
    oob_rows: Any = () if reference is None else _outputs.out_of_bag_rows(model, target, data.classes[data.y])
    _outputs.save_model(model, out)
    _print(model, data, threshold, metrics, time_folds, json_out)
    if reference is not None:
        _outputs.write_reference(reference, oob_rows, data.source, kept)


def _cross_validate(
    model: _Model, data: Labelled, columns: LabelledColumns, n_folds: int, seed: int
) -> tuple[dict[str, list[MetricValue]], list[dict[str, Any]]]:
    """Return means of metrics over folds, with Nadeau and Bengio's intervals, and a description of folds by time."""
    cv = split_rows(data, n_folds, 1, seed)
    random = np.random.RandomState(seed)
    models = {"model": clone(model).set_params(oob_score=False)}
    samples = LabelledRows(data.X, data.y, data.weight, data.groups)
    splits = make_folds(data.X, data.y, cv=cv, random_state=random)
    folds = run_folds(models, samples, splits, QUALITY, random, verbose=int(sys.stderr.isatty()))
    n_classes = len(data.classes)
    metrics = [
        MetricValue(metric, *resampled_mean(folds[metric][:, 0], folds, METRICS[metric].upper_bound(n_classes), 0.95))
        for metric in QUALITY
    ]
    by = columns.groups or columns.time
    name = f"{n_folds} folds" if by is None else f"{n_folds} folds by {by}"
    return {name: metrics}, describe_time_folds(data, cv)


def _fit(
    model: _Model, data: Labelled, columns: LabelledColumns, memory_limit: str | None, folder: Path | None
) -> None:
    """Fit a model to a table in memory. If the table is not in memory (X is None), read it in batches."""
    if len(data.classes) == 2:
        rule = rule_for(model.threshold, 2, int(np.argsort(data.classes)[1]))
        model.set_params(pos_label=data.classes.tolist()[1], threshold=rule)
    if data.X is not None:
        model.fit(data.X, data.classes[data.y], sample_weight=data.weight, groups=data.groups)
        names = set(data.X.column_names)
        if formats := {name: written for name, written in data.source.text_formats.items() if name in names}:
            model.text_formats_ = formats
    else:
        assert isinstance(model, AUCForestClassifier)
        settings = {"target": columns.target, "sample_weight": columns.weight, "positive": str(data.classes[-1])}
        settings |= {} if columns.groups is None else {"groups": columns.groups}
        order = np.argsort(data.classes)
        labels = recode(data.y, np.argsort(order).astype(np.uint16))
        rows = Target(data.classes[order], labels, data.weight, data.groups)
        features = FeatureBatches.of(data.source, data.features, rows, model._params())
        fit_source(model, features, settings, memory_limit=memory_limit or "2GiB", folder=folder)


def _print(
    model: _Model,
    data: Labelled,
    threshold: str,
    metrics: dict[str, list[MetricValue]],
    time_folds: list[dict[str, Any]],
    json_out: Path | None,
) -> None:
    counts = dict(zip(map(str, data.classes.tolist()), count_classes(data.y, len(data.classes)).tolist()))
    members = dict(zip(model.members_, model.weights_.tolist())) if isinstance(model, AUCStackingClassifier) else {}
    console = _outputs.make_console(json_out)
    console.print(_outputs.metrics_table(data.title, metrics))
    if time_folds:
        console.print(time_folds_table(time_folds))
    rows = ", ".join(f"{label} {count:,}" for label, count in counts.items())
    lines = [
        f"{_outputs.describe_rows(model, len(data.y))} ({rows}); {_outputs.describe_features(model)}",
        _outputs.describe_threshold(model, threshold),
        *([f"members: {', '.join(f'{name} {weight:.2g}' for name, weight in members.items())}"] if members else []),
    ]
    console.print(Text("\n".join(lines)))
    content = {
        "data": data.title,
        "n_samples": len(data.y),
        "n_columns": model.n_features_in_,
        "n_features": _outputs.n_features(model),
        "class_counts": counts,
        "threshold": np.asarray(model.threshold_).tolist(),
        "metrics": {kind: [metric._asdict() for metric in measured] for kind, measured in metrics.items()},
    }
    optional: dict[str, Any] = {"members": members, "time_folds": time_folds}
    _outputs.write_json(json_out, content, optional=optional)


def _reads_batches(train: Path, is_stack: bool, is_validated: bool, batch_option: str | None) -> bool:
    """Return whether to read a table in batches; a usage error if an option requests it for a stack or folds."""
    if is_stack or is_validated:
        if batch_option is not None:
            what = "--model forest: a stack is" if is_stack else "fits without --validate: folds are"
            raise typer.BadParameter(f"is for {what} fitted in memory", param_hint=batch_option)
        return False
    most = min(_MOST_BYTES, machine_memory() // _MEMORY_DIVISOR)
    is_small = train.is_file() and train.suffix.lower() != ".parquet" and train.stat().st_size <= most
    return batch_option is not None or not is_small


def _parse_names(option: str, listed: str, possible: tuple[str, ...], words: dict[str, Any]) -> Any:
    """Return the value of one of `words`, or else the names in a comma-separated list."""
    if listed in words:
        return words[listed]
    names = names_in(listed)
    if not set(names) <= set(possible) or repeated(names):
        wanted = f"must be {', '.join(words)} or some of {', '.join(possible)}, each once, but is {listed!r}"
        raise typer.BadParameter(wanted, param_hint=option)
    return names


def _oob_auc(model: _Model, data: Labelled) -> MetricValue:
    """Return the out-of-bag ROC AUC. It has an interval if there are two classes and no groups."""
    if len(model.classes_) > 2 or data.groups is not None:
        return MetricValue("roc_auc", model.oob_score_)
    is_oob = np.isfinite(model.oob_decision_function_[:, 0])
    weight = None if data.weight is None else data.weight[is_oob]
    is_positive, score = data.y[is_oob] == 1, model.oob_decision_function_[is_oob, positive_last(model)[-1]]
    return MetricValue("roc_auc", *auc_with_interval(is_positive, score, weight, auc=model.oob_score_))
