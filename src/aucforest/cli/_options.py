"""Arguments and options of several commands, and the conversion of their values, such as threshold rules."""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from aucforest.estimators.threshold_rules import RULES
from aucforest.metrics.at_k import parse_number
from aucforest.metrics.thresholds import BOUNDS, check_bounds, check_cost
from aucforest.tables.database import columns_of
from aucforest.tables.read_options import CHECKS, ReadOptions
from aucforest.tree.criteria.table import CRITERIA

TABLE_HELP = (
    "A .csv, .tsv or .jsonl table (or .gz or .zst of these), .xlsx or .parquet, or a folder of such files; - is CSV on"
    " standard input."
)
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")]
Data = Annotated[Path, typer.Argument(metavar="DATA", help=TABLE_HELP)]
TargetColumn = Annotated[str, typer.Option(metavar="COLUMN", help="The column of class labels.")]
TARGET_HELP = "The column of class labels. A quantity needs --positive, such as '>=18'."
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL",
        help="The positive label, or a comparison of numbers such as '>=18'; all other rows are negative. Of two text"
        " labels the rarer is positive by default, unless they are false/true or no/yes.",
    ),
]
PositiveOfModel = Annotated[
    str | None,
    typer.Option(
        metavar="LABEL", help="The positive label. The model knows it, unless its classes are true and false."
    ),
]
Weight = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of sample weights.")]
Drop = Annotated[str | None, typer.Option(metavar="A,B", help="Columns that are not used as features.")]
Categorical = Annotated[
    str | None,
    typer.Option(
        metavar="A,B", help="Columns of text files that are categorical though they hold numbers, such as postal codes."
    ),
]

Groups = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column of groups, such as customers with several rows. No group has both training and test rows.",
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="The column of dates or numbers: test rows of a fold are later than its training rows."
    ),
]


def validator(check: Callable[[str], Any]) -> Callable[[str | None], str | None]:
    """Return a callback for an option that calls `check` with its value; a ValueError becomes a usage error."""

    def callback(value: str | None) -> str | None:
        try:
            if value is not None:
                check(value)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        return value

    return callback


def _checked_option(metavar: str, check: Callable[[str], Any], help_text: str) -> Any:
    """Return the annotation of a text option that `check` validates."""
    return Annotated[str | None, typer.Option(metavar=metavar, callback=validator(check), help=help_text)]


_SEPARATOR = _checked_option(
    "CHARACTER",
    CHECKS["separator"],
    r"The character between the values of a CSV, such as ';' or '\t'. Default: the one that the header shows.",
)
_ENCODING = _checked_option(
    "NAME", CHECKS["encoding"], "The encoding of text, such as cp1252. By default UTF-8, UTF-16 or UTF-32."
)
_DATE_FORMAT = _checked_option(
    "FORMAT",
    CHECKS["date_format"],
    "The format of dates in text, such as '%m/%d/%Y %H:%M'. Default: the only one that fits nearly all values.",
)
_DECIMAL = _checked_option(
    "MARK",
    CHECKS["decimal"],
    "The decimal mark, '.' or ',', of numbers in text for which both are possible, such as 12,345.",
)
_THOUSANDS = _checked_option(
    "MARK", CHECKS["thousands"], "The thousands separator of numbers in text: ',', '.', an apostrophe or a space."
)
_WHERE = _checked_option(
    "SQL",
    columns_of,
    "Read only rows for which an SQL expression is true, such as \"channel = 'web' AND amount > 10\".",
)
_SAMPLE = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Read only N of the rows, chosen at random, the same each time.")
]
_STRAY_TEXT = (
    "How to read a text column of numbers or dates with fewer than 10 % other values, such as 'unknown': these as"
    " missing (number), or all values as text."
)
_STRAY_TEXT_FOR_MODEL = (
    "How to read values such as 'unknown' in a column of numbers or dates: as missing (number), if they are fewer"
    " than 10 %, or as an error (text)."
)


def takes_read_options(*, for_model: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that replaces the parameter `read_options` of a command by options for reading files.

    If `for_model` is True, the help of --stray-text is that of a command which reads the columns of a fitted model.
    """
    stray_text = typer.Option("--stray-text", help=_STRAY_TEXT_FOR_MODEL if for_model else _STRAY_TEXT)
    stray_text_type = Annotated[Literal["number", "text"], stray_text]
    types = (_SEPARATOR, _ENCODING, _DECIMAL, _THOUSANDS, _DATE_FORMAT, stray_text_type, _WHERE, _SAMPLE)
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=type_)
        for (name, default), type_ in zip(ReadOptions()._asdict().items(), types)
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_options(**values: Any) -> None:
            read_options = ReadOptions(**{name: values.pop(name) for name in ReadOptions._fields})
            command(read_options=read_options, **values)

        original, parameters = signature(command), list[Parameter]()
        for parameter in original.parameters.values():
            parameter = parameter.replace(kind=Parameter.KEYWORD_ONLY)
            parameters += options if parameter.name == "read_options" else [parameter]
        with_options.__signature__ = original.replace(parameters=parameters)  # type: ignore[attr-defined]
        return with_options

    return decorate


if TYPE_CHECKING:
    Criterion = str
else:
    Criterion = Literal[("auto", *CRITERIA)]
Prevalence = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        help="The frequency of the positive class where the model is used, if it is not that of the training data.",
    ),
]
Reference = Annotated[
    Path | None,
    typer.Option(metavar="OUT", help="Table to write: labels with out-of-bag predictions, for aucforest estimate."),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
JsonOut = Annotated[
    Path | None, typer.Option("--json", metavar="OUT", help="JSON file for the metrics; - is standard output.")
]
PlotOut = Annotated[
    Path | None, typer.Option("--plot", metavar="OUT", help="Picture file to write (.png, .svg or .pdf).")
]


def _check_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("must be at least 1, or -1 for all cores, but is 0")
    return jobs


Jobs = Annotated[int, typer.Option(callback=_check_jobs, help="Number of threads; -1 uses all cores.")]


def number_or_word(option: str, text: str, *words: str) -> str | int | float:
    """Return the value of an option that accepts numbers and some words; raise a usage error for other text."""
    if text in words:
        return text
    try:
        return parse_number(text)
    except ValueError:
        wanted = " or ".join(filter(None, [", ".join(words), "a number"]))
        raise typer.BadParameter(f"must be {wanted}, but is {text!r}", param_hint=option) from None


def names_in(listed: str | None) -> list[str]:
    return [] if listed is None else [name.strip() for name in listed.split(",")]


_RULE_FORMS = (*RULES, *(f"{key}=NUMBER" for key in BOUNDS), "cost=FP:FN", "alerts=NUMBER,cost=FP:FN", "argmax")
RULE_HELP = (
    f"How probabilities become labels: {', '.join(RULES)}, argmax, or a probability. For two classes also alerts=0.01"
    " (at most that proportion of rows is predicted positive, or that number), precision=0.9 (the highest recall with"
    " at least that precision), recall=0.8 (the highest threshold with at least that recall), fpr=0.01 (the highest"
    " recall with at most that false positive rate), cost=1:10 (the least cost, where a false positive costs 1 and a"
    " false negative 10), and alerts=0.01,cost=1:10 (the least cost with at most so many alerts)."
)


def parse_rule(text: str) -> Any:
    """Return a rule as a value of the parameter `threshold`, with the negative class first in its cost matrix."""
    if text in (*RULES, "argmax"):
        return None if text == "argmax" else text
    with suppress(ValueError):
        if 0.0 <= float(text) <= 1.0:
            return float(text)
    parts = [part.partition("=") for part in text.split(",")]
    rule: dict[str, Any] = {key: value for key, _, value in parts}
    try:
        if not set(rule) <= {*BOUNDS, "cost"} or len(rule) < len(parts):
            raise ValueError(f"must be {', '.join(_RULE_FORMS)} or a probability, but is {text!r}")
        for key, value in rule.items():
            rule[key] = _cost_matrix(value) if key == "cost" else number_or_word("--threshold", value)
        check_bounds(rule, name="the rule", others=("cost",))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--threshold") from error
    return rule


def _cost_matrix(text: str) -> list[list[float]]:
    """Return the cost matrix for text such as "1:10", the costs of a false positive and of a false negative."""
    try:
        fp, fn = map(float, text.split(":"))
        cost = [[0.0, fp], [fn, 0.0]]
        check_cost(cost, 2)
    except ValueError:
        sentence = "cost must be the costs of a false positive and a false negative, such as 1:10, but is"
        raise ValueError(f"{sentence} {text!r}") from None
    return cost


def rule_for(rule: Any, n_classes: int, positive: int) -> Any:
    """Return the result of `parse_rule` with the rows and columns of its cost matrix in the order of the classes.

    `positive` is the index of the positive class. Raises ValueError if the rule needs two classes and there are more.
    """
    if not isinstance(rule, dict):
        return rule
    if n_classes > 2:
        raise ValueError(f"--threshold with {' and '.join(rule)} is for two classes, but there are {n_classes}")
    return rule if positive == 1 or "cost" not in rule else rule | {"cost": np.flip(rule["cost"]).tolist()}
