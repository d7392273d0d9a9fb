"""Export of a forest to an ONNX graph: the trees, their mean, its calibration, and the decision.

Values are compared with thresholds, and probabilities are averaged, as float64. So samples reach the same leaves as in
the trees, and probabilities differ only by rounding to float32, as which they are put out. A file that reads float32
instead has thresholds of float32, which part all values of float32 as those of the trees do.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest._files import write_whole
from aucforest._optional import import_optional
from aucforest.exports.expanded import chained, rounded_down
from aucforest.tree.tree import Tree

# Operator sets of 2022 and 2021, which current runtimes support.
_OPSET, _ML_OPSET = 17, 3
# A tuned threshold equals the probability of a sample, which must not fall below it by rounding to float32.
_ROUNDING = 1e-6

# (slope, intercepts, least): probabilities p become max(p, least) ** slope * exp(intercepts), normalized.
LogitMap = tuple[float, NDArray[np.float64], float]


class Ensemble(NamedTuple):
    """Trees whose mean is the prediction."""

    trees: Sequence[Tree]
    n_codes: Mapping[int, int]  # the number of codes of each categorical feature
    calibration: LogitMap | None = None  # of the mean


def is_float32(dtype: Any) -> bool:
    """Return whether it is float32 and not float64; ValueError if it is neither."""
    if dtype not in ("float32", "float64", np.float32, np.float64):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
    return np.dtype(dtype) == np.float32


class Graph:
    """The nodes and constants of an ONNX graph that reads X as `dtype`; `X` is the name of its values as float64."""

    def __init__(self, dtype: Any = "float64") -> None:
        self.onnx = import_optional("onnx", purpose="writing ONNX", extra="onnx")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.is_narrow = is_float32(dtype)
        self.X = self.add_cast("X", "X_double", "DOUBLE") if self.is_narrow else "X"

    def constant(self, name: str, value: Any) -> str:
        """Add a constant and return its name."""
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind: str, *inputs: str, output: str, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], name=f"{kind}_{output}", **attributes))
        return output

    def add_cast(self, source: str, output: str, kind: str) -> str:
        """Add a node that converts the type of numbers, such as "FLOAT", and return the name of its output."""
        return self.add("Cast", source, output=output, to=getattr(self.onnx.TensorProto, kind))


def _add_trees(graph: Graph, ensemble: Ensemble, output: str) -> None:
    """Add the nodes that compute the mean of the trees from X, as float32."""
    parts: list[dict[str, NDArray[Any]]] = []
    for number, tree in enumerate(ensemble.trees):
        nodes = chained(tree, ensemble.n_codes)
        is_leaf = nodes.left < 0
        # `chained` keeps the indices of the nodes of the tree, and it appends no leaves.
        prediction = tree.prediction * tree.is_leaf[:, None]
        leaf, target = np.nonzero(prediction)
        parts.append(
            {
                "nodes_treeids": np.full(len(is_leaf), number),
                "nodes_nodeids": np.arange(len(is_leaf)),
                "nodes_featureids": np.where(is_leaf, 0, nodes.feature),
                "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ"),
                "nodes_values_as_tensor": rounded_down(nodes.threshold) if graph.is_narrow else nodes.threshold,
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


def add_ensemble(graph: Graph, ensemble: Ensemble, output: str) -> str:
    """Add the nodes that compute probabilities from X, as float64; return the name of their output."""
    _add_trees(graph, ensemble, f"{output}_mean")
    if ensemble.calibration is None:
        return graph.add_cast(f"{output}_mean", output, "DOUBLE")
    # In float64: the slope would multiply the rounding errors of logarithms.
    slope, intercepts, least = (np.asarray(value, dtype=np.float64) for value in ensemble.calibration)
    mean = graph.add_cast(f"{output}_mean", f"{output}_mean_double", "DOUBLE")
    log_mean = add_log(graph, mean, float(least))
    power = graph.add("Mul", log_mean, graph.constant(f"{output}_slope", slope), output=f"{output}_power")
    odds = graph.add("Add", power, graph.constant(f"{output}_intercepts", intercepts), output=f"{output}_odds")
    return graph.add("Softmax", odds, output=output, axis=1)


def add_log(graph: Graph, proba: str, least: float) -> str:
    """Add the nodes that compute logarithms of probabilities, of which smaller ones are replaced by `least`."""
    above = graph.add("Max", proba, graph.constant(f"{proba}_least", np.float64(least)), output=f"{proba}_above_0")
    return graph.add("Log", above, output=f"log_{proba}")


def add_decision(graph: Graph, proba: str, threshold: Any, positive: int, slope: float) -> None:
    """Add the nodes that compute "probabilities" as float32, and from these the "class".

    `threshold` is a `threshold_` as in `aucforest.metrics.thresholds.decide`, and `positive` the index of the positive
    one of two classes. A slope above 1 multiplies the relative errors of the odds.
    """
    graph.add_cast(proba, "probabilities", "FLOAT")
    if threshold is None:
        graph.add("ArgMax", "probabilities", output="class", axis=1, keepdims=0)
    elif np.ndim(threshold) == 0:
        names = {"negative": 1 - positive, "positive": positive}
        negative_class, positive_class = (graph.constant(name, np.int64(k)) for name, k in names.items())
        least = graph.constant("threshold", np.float32(threshold * (1.0 - _ROUNDING * max(1.0, slope))))
        graph.add("Gather", "probabilities", positive_class, output="probability", axis=1)
        graph.add("GreaterOrEqual", "probability", least, output="is_positive")
        graph.add("Where", "is_positive", positive_class, negative_class, output="class")
    elif threshold.ndim == 1:
        # A class of prior 0 has probability 0, so its factor does not matter.
        factors = np.divide(1.0, threshold, out=np.zeros(len(threshold)), where=threshold > 0.0)
        graph.add("Mul", "probabilities", graph.constant("factors", factors.astype(np.float32)), output="weighted")
        graph.add("ArgMax", "weighted", output="class", axis=1, keepdims=0)
    else:
        # In units of the greatest one, which float32 always holds.
        cost = graph.constant("cost", (threshold / np.abs(threshold).max()).astype(np.float32))
        graph.add("MatMul", "probabilities", cost, output="expected_cost")
        graph.add("ArgMin", "expected_cost", output="class", axis=1, keepdims=0)


def write_onnx(
    path: str | os.PathLike[str],
    ensemble: Ensemble,
    classes: NDArray[Any],
    threshold: Any = None,
    positive: int = 1,
    dtype: Any = "float64",
) -> None:
    """Write a classifier that averages trees; `threshold` and `positive` are those of `add_decision`."""
    graph = Graph(dtype)
    slope = 1.0 if ensemble.calibration is None else ensemble.calibration[0]
    add_decision(graph, add_ensemble(graph, ensemble, "proba"), threshold, positive, slope)
    write_graph(path, graph, ensemble.trees[0].n_features, classes)


def write_graph(path: str | os.PathLike[str], graph: Graph, n_features: int, classes: NDArray[Any]) -> None:
    """Write a graph that computes "probabilities" and "class"; "label" is the class with its label."""
    labels = np.array(classes.tolist())
    if labels.tolist() != classes.tolist():
        # numpy converts integers beyond int64 to float64.
        labels = classes
    if labels.dtype.kind != "U" and (labels.dtype.kind not in "biuf" or labels.dtype.itemsize > 8):
        raise TypeError(f"ONNX needs labels that are str, bool or numbers of at most 64 bits, not {labels.dtype}")

    helper, kinds = graph.onnx.helper, graph.onnx.TensorProto
    by_class = graph.constant("classes", labels.astype(object) if labels.dtype.kind == "U" else labels)
    graph.add("Gather", by_class, "class", output="label", axis=0)
    outputs = [
        helper.make_tensor_value_info("label", graph.constants[-1].data_type, [None]),
        helper.make_tensor_value_info("probabilities", kinds.FLOAT, [None, len(classes)]),
    ]
    X = helper.make_tensor_value_info("X", kinds.FLOAT if graph.is_narrow else kinds.DOUBLE, [None, n_features])
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "aucforest", [X], outputs, graph.constants),
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="aucforest",
    )
    write_whole(path, model.SerializeToString())
