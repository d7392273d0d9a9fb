"""Export of forests and stacks to ONNX: trees and calibration, additive model, combination, and the decision.

Values are compared with thresholds, and probabilities are averaged, as float64. So samples reach the same leaves as in
the trees, and probabilities differ only because the output is rounded to float32. A file for float32 X has float32
thresholds, which split float32 values in the same way as the thresholds of the trees.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._files import write_whole
from aucforest._optional import import_optional
from aucforest.exports.expanded import round_down, to_chains
from aucforest.tree.tree import SHARED_CODE, Tree

# Operator sets of 2022 and 2021, which current runtimes support.
_OPSET, _ML_OPSET = 17, 3
# Decision thresholds are reduced by this relative amount, because rounding to float32 may lower a probability.
_ROUNDING = 1e-6


def is_float32(dtype: Any) -> bool:
    """Return whether a dtype is float32; ValueError if it is neither float32 nor float64."""
    if dtype not in ("float32", "float64", np.float32, np.float64):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
    return np.dtype(dtype) == np.float32


class Graph:
    """The nodes and constants of an ONNX graph with an input "X" of type `dtype`; `self.X` names X as float64."""

    def __init__(self, dtype: Any = "float64") -> None:
        self.onnx = import_optional("onnx", purpose="writing ONNX", extra="onnx")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.is_float32 = is_float32(dtype)
        self.X = self.add_cast("X", "X_double", "DOUBLE") if self.is_float32 else "X"

    def add(self, kind: str, *inputs: Any, output: str, **attributes: Any) -> str:
        """Add a node and return the name of its output; `inputs` are names of outputs and values of constants."""
        names = [value if isinstance(value, str) else self._add_constant(value) for value in inputs]
        self.nodes.append(self.onnx.helper.make_node(kind, names, [output], name=f"{kind}_{output}", **attributes))
        return output

    def _add_constant(self, value: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add_cast(self, source: str, output: str, kind: str) -> str:
        """Add a node that converts numbers to a type such as "FLOAT", and return the name of its output."""
        return self.add("Cast", source, output=output, to=getattr(self.onnx.TensorProto, kind))


def _add_trees(graph: Graph, ensemble: "Ensemble", output: str) -> None:
    """Add the nodes that compute the mean of `Ensemble.values` over trees from X, as float32."""
    parts: list[dict[str, NDArray[Any]]] = []
    for number, tree in enumerate(ensemble.trees):
        # `to_chains` keeps the indices of the nodes of the tree, and it appends no leaves.
        nodes, prediction = to_chains(tree, ensemble.n_codes), ensemble.values(tree)
        is_leaf = nodes.left < 0
        is_stored = tree.is_leaf[:, None] & (prediction != 0.0)
        if not is_stored.any():  # a boosted tree may have only zeros, but ONNX needs a value
            is_stored[tree.is_leaf.argmax(), 0] = True
        leaf, target = np.nonzero(is_stored)
        parts.append(
            {
                "nodes_treeids": np.full(len(is_leaf), number),
                "nodes_nodeids": np.arange(len(is_leaf)),
                "nodes_featureids": np.where(is_leaf, 0, nodes.feature),
                "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ"),
                "nodes_values_as_tensor": round_down(nodes.threshold) if graph.is_float32 else nodes.threshold,
                "nodes_truenodeids": np.where(is_leaf, 0, nodes.left),
                "nodes_falsenodeids": np.where(is_leaf, 0, nodes.right),
                "nodes_missing_value_tracks_true": (nodes.missing_left & ~is_leaf).astype(np.int64),
                "target_treeids": np.full(len(leaf), number),
                "target_nodeids": leaf,
                "target_ids": target,
                "target_weights_as_tensor": prediction[leaf, target],
            }
        )
    n_classes = ensemble.trees[0].n_classes
    attributes = {"domain": "ai.onnx.ml", "n_targets": n_classes, "aggregate_function": "AVERAGE"}
    for name in parts[0]:
        values = np.concatenate([part[name] for part in parts])
        is_tensor = name.endswith("_as_tensor")
        attributes[name] = graph.onnx.numpy_helper.from_array(values) if is_tensor else values.tolist()
    graph.add("TreeEnsembleRegressor", graph.X, output=output, **attributes)


def _add_log(graph: Graph, proba: str, least: float) -> str:
    """Add the nodes that compute the logarithm of probabilities; probabilities below `least` are replaced by it."""
    return graph.add("Log", graph.add("Max", proba, least, output=f"{proba}_above_0"), output=f"log_{proba}")


def _add_decision(graph: Graph, proba: str, threshold: Any, positive: int, slope: float) -> None:
    """Add the nodes that compute "probabilities" as float32, and from them the index of the "class".

    A threshold is reduced by the proportion _ROUNDING, or by `_ROUNDING * slope` if this is larger.
    """
    graph.add_cast(proba, "probabilities", "FLOAT")
    if threshold is None:
        graph.add("ArgMax", "probabilities", output="class", axis=1, keepdims=0)
    elif np.ndim(threshold) == 0:
        least = np.float32(threshold * (1.0 - _ROUNDING * max(1.0, slope)))
        graph.add("Gather", "probabilities", np.int64(positive), output="probability", axis=1)
        graph.add("GreaterOrEqual", "probability", least, output="is_positive")
        graph.add("Where", "is_positive", np.int64(positive), np.int64(1 - positive), output="class")
    elif threshold.ndim == 1:
        # A class with a prior probability of 0 has probability 0, so its factor does not matter.
        factors = np.divide(1.0, threshold, out=np.zeros(len(threshold)), where=threshold > 0.0)
        graph.add("Mul", "probabilities", factors.astype(np.float32), output="weighted")
        graph.add("ArgMax", "weighted", output="class", axis=1, keepdims=0)
    else:
        # Costs are divided by the greatest one, because float32 cannot represent all costs.
        cost = (threshold / np.abs(threshold).max()).astype(np.float32)
        graph.add("MatMul", "probabilities", cost, output="expected_cost")
        graph.add("ArgMin", "expected_cost", output="class", axis=1, keepdims=0)


def _add_additive(graph: Graph, model: Any) -> str:
    """Add the nodes that compute the probabilities of an additive model."""

    def gather(source: str, indices: Any, name: str) -> str:
        return graph.add("Gather", source, indices, output=name, axis=1)

    columns = []
    if len(model.numbers_):
        centred = graph.add("Sub", gather(graph.X, model.numbers_, "numbers"), model.centre_, output="centred")
        ratio = graph.add("Div", centred, model.scale_, output="ratio")
        # NaN is replaced before clipping, because a runtime may clip NaN to a bound.
        filled = graph.add("Where", graph.add("IsNaN", ratio, output="is_missing"), 0.0, ratio, output="filled")
        columns.append(graph.add("Clip", filled, -model.MOST_SCALED, model.MOST_SCALED, output="scaled"))
    if len(model.knots_):
        above = graph.add("Sub", gather("scaled", model.knot_indices_, "at_knots"), model.knots_, output="above_knots")
        columns.append(graph.add("Relu", above, output="splines"))
    if len(model.missing_):
        graph.add("IsNaN", gather(graph.X, model.missing_, "maybe_missing"), output="are_missing")
        columns.append(graph.add_cast("are_missing", "missing", "DOUBLE"))
    coef, total = model.coef_by_class()
    n_columns = coef.shape[1] - len(model.codes_)
    if columns:
        joined = graph.add("Concat", *columns, output="columns", axis=1)
        product = graph.add("MatMul", joined, coef[:, :n_columns].T, output="products")
        total = graph.add("Add", product, total, output="linear_columns")
    interactions = {model.n_features_ + i: table for i, table in enumerate(model.interactions)}
    for feature in np.unique(model.code_features_).tolist():
        is_code, name = model.code_features_ == feature, f"code_{feature}"
        if (table := interactions.get(feature)) is None:
            value = gather(graph.X, [feature], name)
        else:
            category = gather(graph.X, [table.feature], f"{name}_category")
            other = gather(graph.X, [table.other], f"{name}_other")
            value = _add_cells(graph, table, category, other, name)
        codes = model.codes_[is_code].astype(np.int64)
        is_missing = graph.add("IsNaN", value, output=f"{value}_missing_code")
        known = graph.add("Where", is_missing, -1.0, value, output=f"{value}_known")
        code = graph.add_cast(known, f"{value}_number_of_code", "INT64")
        row = graph.add("LabelEncoder", code, output=f"{value}_row", domain="ai.onnx.ml", keys_int64s=codes.tolist(),
                        values_int64s=[*range(len(codes))], default_int64=len(codes))  # fmt: skip
        # The last row, of zeros, is for values without a coefficient.
        coef_of_codes = np.vstack((coef[:, n_columns:][:, is_code].T, np.zeros(len(coef))))
        terms = graph.add("Gather", coef_of_codes, row, output=f"{value}_of_rows", axis=0)
        term = graph.add("Squeeze", terms, np.array([1]), output=f"{value}_term")
        total = graph.add("Add", total, term, output=f"linear_{feature}")
    return graph.add("Softmax", total, output="linear", axis=1)


def _add_cells(graph: Graph, table: Any, category: str, other: str, name: str) -> str:
    """Add the nodes that compute the cell of an interaction for each row from two columns, NaN if one is missing."""
    if len(table.edges) > 0:
        above = graph.add("Greater", other, table.edges, output=f"{name}_above")
        counted = graph.add_cast(above, f"{name}_counted", "DOUBLE")
        number = graph.add("ReduceSum", counted, np.array([1]), output=f"{name}_number")
    else:
        number = graph.add("Min", other, float(SHARED_CODE), output=f"{name}_number")
    # Where `other` is NaN, `number` need not be: comparisons are false, and a runtime may skip NaN in a minimum.
    part = graph.add("Where", graph.add("IsNaN", other, output=f"{name}_missing"), other, number, output=f"{name}_part")
    first = graph.add("Mul", category, float(table.n_parts), output=f"{name}_first")
    return graph.add("Add", first, part, output=name)


class Ensemble(NamedTuple):
    """Trees whose mean is the class probabilities before calibration or, with a `scale`, the class scores."""

    trees: Sequence[Tree]
    n_codes: Mapping[int, int]  # the number of codes of each categorical feature
    # (slope, intercepts, least): means p become max(p, least) ** slope * exp(intercepts), divided by their sum.
    calibration: tuple[float, NDArray[np.float64], float] | None = None
    scale: float | None = None

    @property
    def slope(self) -> float:
        """The relative error of the odds, as a multiple of the relative error of the mean of the trees."""
        if self.scale is not None:
            return float(np.mean([np.abs(self.values(tree)).max() for tree in self.trees]))
        return 1.0 if self.calibration is None else self.calibration[0]

    def values(self, tree: Tree) -> NDArray[np.float64]:
        """Return the values of the nodes of a tree, (n_nodes, n_classes), whose mean over all trees is exported."""
        if self.scale is None:
            return tree.prediction
        # Only differences between classes matter, so the median is subtracted. Then float32 is precise enough, and most
        # values are 0, because with more than two classes a tree changes the score of only one class.
        return self.scale * (tree.prediction - np.median(tree.prediction, axis=1, keepdims=True))

    def add_to(self, graph: Graph, output: str = "proba") -> str:
        """Add the nodes that compute probabilities or scores from X, as float64; return the name of their output."""
        _add_trees(graph, self, f"{output}_mean")
        if self.calibration is None:
            return graph.add_cast(f"{output}_mean", output, "DOUBLE")
        # In float64, because the slope multiplies the rounding errors of logarithms.
        slope, intercepts, least = (np.asarray(value, dtype=np.float64) for value in self.calibration)
        mean = graph.add_cast(f"{output}_mean", f"{output}_mean_double", "DOUBLE")
        log_mean = _add_log(graph, mean, float(least))
        power = graph.add("Mul", log_mean, slope, output=f"{output}_power")
        odds = graph.add("Add", power, intercepts, output=f"{output}_odds")
        return graph.add("Softmax", odds, output=output, axis=1)


class ExportedStack(NamedTuple):
    """The members of a stack and their combination. Members of weight 0 are not exported."""

    ensembles: Mapping[str, Ensemble]  # "forest", and the members "residual" and "boosted" if there are any
    linear: Any  # a fitted additive model with attributes such as `knots_`, or None
    coef: Mapping[str, float]  # the weights of the members by name
    intercept: NDArray[np.float64]
    least: float  # smaller probabilities are replaced by it, so that logarithms are finite

    @property
    def slope(self) -> float:
        """The relative error of the odds, as a multiple of the relative errors of the means of trees."""
        slopes = {name: ensemble.slope for name, ensemble in self.ensembles.items()}
        if "residual" in slopes:
            slopes["residual"] += 2.0 * slopes["forest"]  # its score contains log p and log(1 - p) of the forest
        return sum(self.coef[name] * slope for name, slope in slopes.items())

    def add_to(self, graph: Graph) -> str:
        """Add the nodes that compute probabilities from X, as float64; return the name of their output."""
        total: Any = self.intercept
        for name, score in self._add_scores(graph).items():
            term = graph.add("Mul", score, np.float64(self.coef[name]), output=f"{name}_term")
            total = graph.add("Add", total, term, output=f"{name}_total")
        return graph.add("Softmax", total, output="proba", axis=1)

    def _add_scores(self, graph: Graph) -> dict[str, str]:
        """Add the nodes that compute the scores of members, and return the names of their outputs."""
        scores, used = {}, {name for name, weight in self.coef.items() if weight > 0.0}
        if not used or used & {"forest", "residual"}:
            proba = self.ensembles["forest"].add_to(graph, "forest")
            scores["forest"] = _add_log(graph, proba, self.least)
        if "residual" in used:
            residual = _add_log(graph, self.ensembles["residual"].add_to(graph, "residual"), self.least)
            # 1 - p is computed as the sum of the other probabilities, which is precise also if p is close to 1.
            others = graph.add("MatMul", proba, 1.0 - np.eye(len(self.intercept)), output="others")
            without = graph.add("Sub", residual, scores["forest"], output="residual_without_forest")
            scores["residual"] = graph.add("Sub", without, _add_log(graph, others, self.least), output="residual_score")
        if "boosted" in used:
            scores["boosted"] = self.ensembles["boosted"].add_to(graph, "boosted")
        if "linear" in used:
            scores["linear"] = _add_log(graph, _add_additive(graph, self.linear), self.least)
        return scores


def write_onnx(
    path: str | os.PathLike[str],
    model: Ensemble | ExportedStack,
    classes: NDArray[Any],
    threshold: Any = None,
    positive: int = 1,
    dtype: Any = "float64",
) -> None:
    """Write a classifier whose output "label" is the label of the predicted class.

    `threshold` is a `threshold_` as in `aucforest.metrics.thresholds.decide`, and `positive` the index of the positive
    class if there are two classes.
    """
    graph = Graph(dtype)
    _add_decision(graph, model.add_to(graph), threshold, positive, model.slope)
    labels = np.array(classes.tolist())
    if labels.tolist() != classes.tolist():  # numpy converts integers beyond int64 to float64
        labels = classes
    if labels.dtype.kind != "U" and (labels.dtype.kind not in "biuf" or labels.dtype.itemsize > 8):
        raise TypeError(f"ONNX needs labels that are str, bool or numbers of at most 64 bits, not {labels.dtype}")
    helper, kinds = graph.onnx.helper, graph.onnx.TensorProto
    constant = labels.astype(object) if labels.dtype.kind == "U" else labels
    graph.add("Gather", constant, "class", output="label", axis=0)
    outputs = [
        helper.make_tensor_value_info("label", graph.constants[-1].data_type, [None]),
        helper.make_tensor_value_info("probabilities", kinds.FLOAT, [None, len(classes)]),
    ]
    n_features = (model if isinstance(model, Ensemble) else model.ensembles["forest"]).trees[0].n_features
    X = helper.make_tensor_value_info("X", kinds.FLOAT if graph.is_float32 else kinds.DOUBLE, [None, n_features])
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
    file = helper.make_model(
        helper.make_graph(graph.nodes, "aucforest", [X], outputs, graph.constants),
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="aucforest",
    )
    write_whole(path, file.SerializeToString())
