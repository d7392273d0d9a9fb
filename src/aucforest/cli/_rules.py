"""The threshold rules of an option, such as recall=0.8 or alerts=0.01,cost=1:10."""

from typing import Any

import numpy as np
import typer

from aucforest.cli._options import number_or
from aucforest.estimators.thresholds import RULES
from aucforest.metrics.thresholds import BOUNDS, check_bounds, check_cost

_FORMS = (*RULES, *(f"{key}=NUMBER" for key in BOUNDS), "cost=FP:FN", "alerts=NUMBER,cost=FP:FN", "argmax")
RULE_HELP = (
    f"How probabilities become labels: {', '.join(RULES)}, argmax, or a probability. Of two classes also alerts=0.01"
    " (at most that proportion of rows is predicted positive, or that number), precision=0.9 (the highest recall with"
    " at least that precision), recall=0.8 (the highest threshold with at least that recall), fpr=0.01 (the highest"
    " recall with at most that false positive rate), cost=1:10 (the least cost, where a false positive costs 1 and a"
    " false negative 10), and alerts=0.01,cost=1:10 (the least cost with at most so many alerts)."
)


def parse_rule(text: str) -> Any:
    """Return the value of the parameter `threshold` for a rule; costs are in the order negative, positive class."""
    if text in (*RULES, "argmax"):
        return None if text == "argmax" else text
    parts = [part.partition("=") for part in text.split(",")]
    try:
        if len(parts) == 1 and not parts[0][1] and 0.0 <= float(text) <= 1.0:
            return float(text)
    except ValueError:
        pass
    rule: dict[str, Any] = {key: value for key, _, value in parts}
    if not set(rule) <= {*BOUNDS, "cost"} or len(rule) < len(parts):
        _refuse(f"must be {', '.join(_FORMS)} or a probability, but is {text!r}")
    try:
        rule = {key: _costs(value) if key == "cost" else number_or("--threshold", value) for key, value in rule.items()}
        check_bounds(rule, name="the rule", others=("cost",))
    except ValueError as error:
        _refuse(str(error))
    return rule


def _refuse(message: str) -> None:
    raise typer.BadParameter(message, param_hint="--threshold")


def _costs(text: str) -> list[list[float]]:
    """Return the cost matrix from the costs of a false positive and a false negative, such as "1:10"."""
    try:
        fp, fn = map(float, text.split(":"))
        cost = [[0.0, fp], [fn, 0.0]]
        check_cost(cost, 2)
    except ValueError:
        sentence = "cost must be the costs of a false positive and a false negative, such as 1:10, but is"
        raise ValueError(f"{sentence} {text!r}") from None
    return cost


def rule_for(rule: Any, n_classes: int, positive: int) -> Any:
    """Return a rule with its costs in class order; ValueError if it needs two classes and there are more."""
    if not isinstance(rule, dict):
        return rule
    if n_classes > 2:
        raise ValueError(f"--threshold with {' and '.join(rule)} is for two classes, but there are {n_classes}")
    return rule if positive == 1 or "cost" not in rule else rule | {"cost": np.flip(rule["cost"]).tolist()}
