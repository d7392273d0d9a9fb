"""Export of a stack to an ONNX graph: its forests, its additive model, and the softmax of their weighted scores.

All is computed as float64, but for the means of trees, which are float32.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.exports.onnx import Ensemble, Graph, add_decision, add_ensemble, add_log, write_graph


class Stack(NamedTuple):
    """The members of a stack and their combination."""

    forest: Ensemble
    residual: Ensemble | None
    linear: Any  # a fitted additive model with attributes such as `knots_`, or None
    coef: Mapping[str, float]  # the weights of the members, by these names
    intercept: NDArray[np.float64]
    least: float  # in place of smaller probabilities, because 0 has no logarithm


def write_stack(
    path: str | os.PathLike[str],
    stack: Stack,
    classes: NDArray[Any],
    threshold: Any,
    positive: int,
    dtype: Any = "float64",
) -> None:
    """Write a stack without the members of weight 0; `threshold` and `positive` are those of `add_decision`."""
    graph = Graph(dtype)
    total = graph.constant("intercept", stack.intercept)
    for name, score in _add_scores(graph, stack).items():
        weight = graph.constant(f"{name}_weight", np.float64(stack.coef[name]))
        term = graph.add("Mul", score, weight, output=f"{name}_term")
        total = graph.add("Add", total, term, output=f"{name}_total")
    # By how much the relative errors of the means of trees are multiplied in the odds of the stack.
    of_forest = 1.0 if stack.forest.calibration is None else stack.forest.calibration[0]
    slope = stack.coef["forest"] * of_forest
    if stack.residual is not None:
        of_residual = 1.0 if stack.residual.calibration is None else stack.residual.calibration[0]
        slope += stack.coef["residual"] * (of_residual + 2.0 * of_forest)
    add_decision(graph, graph.add("Softmax", total, output="proba", axis=1), threshold, positive, slope)
    write_graph(path, graph, stack.forest.trees[0].n_features, classes)


def _add_scores(graph: Graph, stack: Stack) -> dict[str, str]:
    """Add the nodes that compute the scores of members, and return the names of their outputs."""
    scores = {}
    of_residual, of_linear = (stack.coef.get(name, 0.0) > 0.0 for name in ("residual", "linear"))
    if stack.coef["forest"] > 0.0 or of_residual or not of_linear:
        proba = add_ensemble(graph, stack.forest, "forest")
        scores["forest"] = add_log(graph, proba, stack.least)
    if of_residual and stack.residual is not None:
        residual = add_log(graph, add_ensemble(graph, stack.residual, "residual"), stack.least)
        # The sum of the others, because 1 - p is not precise where p is close to 1.
        is_other = graph.constant("is_other", 1.0 - np.eye(len(stack.intercept)))
        others = graph.add("MatMul", proba, is_other, output="others")
        without = graph.add("Sub", residual, scores["forest"], output="residual_without_forest")
        scores["residual"] = graph.add("Sub", without, add_log(graph, others, stack.least), output="residual_score")
    if of_linear:
        scores["linear"] = add_log(graph, _add_additive(graph, stack.linear), stack.least)
    return scores


def _add_additive(graph: Graph, model: Any) -> str:
    """Add the nodes that compute the probabilities of an additive model."""

    def pick(source: str, indices: NDArray[np.int64], name: str) -> str:
        return graph.add("Gather", source, graph.constant(f"{name}_places", indices), output=name, axis=1)

    def against(kind: str, source: str, values: Any, name: str) -> str:
        return graph.add(kind, source, graph.constant(f"{name}_by", np.asarray(values, np.float64)), output=name)

    columns = []
    if len(model.numbers_):
        centred = against("Sub", pick(graph.X, model.numbers_, "numbers"), model.centre_, "centred")
        ratio = against("Div", centred, model.scale_, "ratio")
        # before it is clipped, because a runtime may clip NaN to a bound
        is_missing = graph.add("IsNaN", ratio, output="is_missing")
        filled = graph.add("Where", is_missing, graph.constant("mean", np.float64(0.0)), ratio, output="filled")
        least, most = (graph.constant(f"clip_{sign}", np.float64(sign * model.MOST_SCALED)) for sign in (-1, 1))
        columns.append(graph.add("Clip", filled, least, most, output="scaled"))
    if len(model.knots_):
        above = against("Sub", pick("scaled", model.knot_places_, "at_knots"), model.knots_, "above_knots")
        columns.append(graph.add("Relu", above, output="splines"))
    if len(model.missing_):
        graph.add("IsNaN", pick(graph.X, model.missing_, "maybe_missing"), output="are_missing")
        columns.append(graph.add_cast("are_missing", "missing", "DOUBLE"))
    coef, intercept = model.coef_by_class()
    total, n_columns = graph.constant("linear_intercept", intercept), coef.shape[1] - len(model.codes_)
    if columns:
        joined = graph.add("Concat", *columns, output="columns", axis=1)
        product = graph.add("MatMul", joined, graph.constant("coef", coef[:, :n_columns].T), output="products")
        total = graph.add("Add", product, total, output="linear_columns")
    for feature in np.unique(model.code_features_).tolist():
        is_own = model.code_features_ == feature
        term = _add_categories(graph, feature, model.codes_[is_own].astype(np.int64), coef[:, n_columns:][:, is_own])
        total = graph.add("Add", total, term, output=f"linear_{feature}")
    return graph.add("Softmax", total, output="linear", axis=1)


def _add_categories(graph: Graph, feature: int, codes: NDArray[np.int64], coef: NDArray[np.float64]) -> str:
    """Add the nodes that look up the coefficients of the categories of a feature, (n_classes, n_codes)."""
    # As few nodes as for one category: a row for each code, and a last one of zeros for values without a coefficient.
    n_rows = int(codes.max()) + 2
    table = np.zeros((n_rows, len(coef)))
    table[codes] = coef.T
    name, last = f"code_{feature}", graph.constant(f"last_{feature}", np.float64(n_rows - 1))
    index = graph.constant(f"{name}_place", np.int64(feature))
    value = graph.add("Gather", graph.X, index, output=name, axis=1)
    # Comparisons with NaN are false.
    least = graph.constant(f"{name}_least", np.float64(0.0))
    is_code = graph.add("And", graph.add("GreaterOrEqual", value, least, output=f"{name}_above"),
                        graph.add("Less", value, last, output=f"{name}_below"), output=f"{name}_known")  # fmt: skip
    row = graph.add_cast(graph.add("Where", is_code, value, last, output=f"{name}_or_last"), f"{name}_row", "INT64")
    return graph.add("Gather", graph.constant(f"{name}_coef", table), row, output=f"{name}_term", axis=0)
