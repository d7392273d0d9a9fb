"""``aucforest inspect``: the content of a model file."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table
from sklearn.base import BaseEstimator

from aucforest.cli._inputs import echo_notes, load_model
from aucforest.cli._options import Model
from aucforest.cli._outputs import check_outputs, make_console, rich_table, write_json
from aucforest.columns.dates import SECONDS, DateColumn
from aucforest.columns.expansion import n_added
from aucforest.columns.values import readable
from aucforest.inspection import export_text, forest_summary
from aucforest.inspection.models import feature_names_of, forest_of, range_names_of
from aucforest.metrics.validation import positive_last
from aucforest.persistence.model_file import read_version

MOST_FEATURES, MOST_CATEGORIES = 25, 6  # maximum numbers that are printed; --json has all
_BY_IMPURITY = (
    "importance by impurity: the share of the gain of all splits on the training rows, which favours columns of many"
    ' values even if they are noise; "aucforest report" with --train has the importance by permutation of out-of-bag'
    " rows"
)


def inspect(
    file: Model,
    text: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Print the rules of tree N (from 0) with class probabilities instead."),
    ] = None,
    json_out: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="JSON file for all of this; - is standard output.")
    ] = None,
) -> None:
    """Show what is in a model file: parameters, classes, features and their categories, the trees.

    For a stack, trees and importances are those of its forest, and the weights of its members are shown.

    Importance by impurity is the share of a feature in the gain of all splits on the training rows. It is large for
    columns of many values, even if they are noise. Permutation importance needs the training rows: "aucforest report"
    with --train computes it.

    Example: aucforest inspect model.aucforest --text 0
    """
    if text is not None and json_out is not None:
        raise typer.BadParameter("cannot be combined with --text, which prints a tree only", param_hint="--json")
    check_outputs(json_out, inputs=[file])
    model = load_model(file)
    forest = forest_of(model) or model
    if text is not None:
        trees = getattr(forest, "estimators_", [forest])
        if text >= len(trees):
            raise ValueError(f"the model has no tree {text}: its {len(trees)} trees are 0 to {len(trees) - 1}")
        if forest is not model:
            echo_notes(["the tree is of the stack's forest, whose probabilities are not those of the stack"])
        typer.echo(export_text(trees[text], decimals=3, show_proba=True))
        return
    facts = _facts(model, file)
    importances = getattr(forest, "split_importances_", np.full(forest.n_features_in_, np.nan))
    console = make_console(json_out)
    console.print(_facts_table(facts))
    most_important = np.argsort(-importances, kind="stable")[:MOST_FEATURES]
    notes = [] if forest is model else ["importances are those of the stack's forest"]
    notes.append(_BY_IMPURITY)
    title = f"{len(importances)} features of {forest.n_features_in_} columns"
    console.print(_features_table(title, _features(forest, importances, most_important), len(importances), notes))
    if json_out is not None:
        features = _features(forest, importances, np.arange(len(importances)))
        write_json(json_out, facts | {"features": features}, what="JSON")


def _facts(model: Any, file: Path) -> dict[str, Any]:
    """Return the properties of the model. For a stack, the properties of trees are those of its forest."""
    params = {name: value for name, value in model.get_params().items() if not isinstance(value, BaseEstimator)}
    classes = model.classes_.tolist()
    facts = {
        "model": type(model).__name__,
        "parameters": {name: value for name, value in params.items() if not name.endswith("n_jobs")},
        "classes": classes,
        **({"positive_class": classes[positive_last(model)[-1]]} if len(classes) == 2 else {}),
        "format_version": read_version(file),
        "file_bytes": file.stat().st_size,
    }
    for name in ("threshold", "shrinkage", "oob_score"):
        if hasattr(model, f"{name}_"):
            facts[f"fitted_{name}"] = np.asarray(getattr(model, f"{name}_")).tolist()
    if hasattr(model, "members_"):
        facts["members"] = dict(zip(model.members_, model.weights_.tolist()))
    forest: Any = forest_of(model) or model
    if getattr(forest, "calibration_", None) is not None:
        calibration = forest.calibration_._asdict()
        name = "fitted_calibration" if forest is model else "fitted_calibration_of_forest"
        facts[name] = calibration | {"intercepts": calibration["intercepts"].tolist()}
    if hasattr(forest, "trees_"):
        summary = forest_summary(forest)
        facts["trees"] = {
            "number": summary.n_trees,
            "mean_nodes": float(summary.n_nodes.mean()),
            "mean_leaves": float(summary.n_leaves.mean()),
            "mean_depth": float(summary.max_depth.mean()),
            "max_depth": int(summary.max_depth.max()),
        }
    if hasattr(forest, "variants_"):
        facts["variants"] = dict(Counter(map(", ".join, forest.variants_)).most_common())
    if getattr(forest, "encodings_", []):
        facts["encodings"] = dict(Counter(forest.encodings_).most_common())
    return facts


def _features(forest: Any, importances: NDArray[np.float64], indices: NDArray[np.int64]) -> list[dict[str, Any]]:
    categories, names = getattr(forest, "categories_", {}), feature_names_of(forest, len(importances))
    expanded, features = getattr(forest, "expanded_", {}), []
    columns = getattr(forest, "_columns_of_features", range(forest.n_features_in_))
    n_inputs, ranges = forest.n_features_in_ + n_added(expanded), range_names_of(forest)
    for feature, importance in zip(indices.tolist(), importances[indices].tolist()):
        listed = list(map(readable, categories[feature].tolist())) if feature in categories else None
        listed = ranges.get(feature, listed)
        column = expanded.get(columns[feature])
        number_kind = "numeric"
        if isinstance(column, DateColumn):
            number_kind = "duration" if column.parts == SECONDS else "date"
        kind = "rate" if feature >= n_inputs else number_kind if listed is None else "categorical"
        features.append({"name": names[feature], "kind": kind, "categories": listed, "impurity_importance": importance})
    return features


def _facts_table(facts: dict[str, Any]) -> Table:
    rows = []
    for name, value in facts.items():
        if name == "file_bytes":
            name, value = "file", f"{value / 2**20:,.2f} MiB"
        elif isinstance(value, dict):
            value = "; ".join(f"{key}={_as_text(part)}" for key, part in value.items())  # variants contain commas
        rows.append([name.replace("_", " "), _as_text(value)])
    return rich_table(None, ["", ""], rows, show_header=False)


def _as_text(value: Any) -> str:
    if isinstance(value, list) and any(isinstance(part, float) for part in value):
        return f"[{', '.join(map(_as_text, value))}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _features_table(title: str, features: list[dict[str, Any]], n_features: int, notes: list[str]) -> Table:
    left_out = n_features - len(features)
    if left_out > 0:
        notes = [f"and {left_out} features of less importance, which are in --json", *notes]
    rows = []
    for feature in features:
        kind, labels = feature["kind"], feature["categories"]
        if labels is not None:
            more = f", ... ({len(labels)} in all)" if len(labels) > MOST_CATEGORIES else ""
            kind = f"categorical: {', '.join(map(repr, labels[:MOST_CATEGORIES]))}{more}"
        rows.append([feature["name"], kind, f"{feature['impurity_importance']:.3f}"])
    return rich_table(title, ["feature", "kind", ">importance by impurity"], rows, caption="; ".join(notes))
