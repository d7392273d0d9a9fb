"""The plots of a report, as SVG elements with distinct ids."""

import re
import warnings
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from aucforest._optional import import_optional
from aucforest.inspection import MixtureDisplay, OOBCurveDisplay, PermutationImportance, ThresholdCurveDisplay
from aucforest.metrics import GainsDisplay, RocBand, RocCurveDisplay, RocEntry
from aucforest.metrics.curve_displays import threshold_curves
from aucforest.report.data import Training
from aucforest.report.importance import Dependence
from aucforest.report.metrics import RECALLS, Bin, Thresholds, cumulate_class, reliability, thin
from aucforest.report.page import Plot, number, shorten, shortened
from aucforest.report.rows import FloatArray, ScoredRows

# Okabe and Ito's palette for color-blind readers, with the light colors darkened for a white background.
COLORS = ["#0072b2", "#c04f00", "#007a5a", "#a8558a", "#8a6d00", "#3c82ab", "#5b5b5b", "#7a3e9d", "#8c2d19", "#2c6e2f"]
DASHES: list[Any] = ["-", "--", "-.", ":", (0, (5, 1))]
_AXES: dict[str, dict[str, str]] = {
    "roc": {"xlabel": "false positive rate", "ylabel": "true positive rate"},
    "gains": {"xlabel": "proportion of rows alerted", "ylabel": "recall"},
    "reliability": {"xlabel": "mean predicted probability", "ylabel": "observed frequency"},
}
_MOST_POINTS = 800  # approximate maximum number of points of a curve
_MOST_CURVES = 10  # maximum number of classes with curves
_WIDTH = 4.6  # inches, so that text is large enough on a phone
_MOST_FEATURES = 20  # maximum number of features in the plot of importances
_PIXELS_PER_POINT = 1.5
# Characters that XML does not allow, such as control characters.
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "aucforest",  # makes ids reproducible
    "text.parse_math": False,  # because names may contain dollar signs
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.edgecolor": "#8a939c",
    "axes.labelcolor": "#2b333b",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": f"cycler('color', {COLORS})",
    "grid.color": "#e4e8ec",
    "grid.linewidth": 0.8,
    "xtick.color": "#4a545e",
    "ytick.color": "#4a545e",
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.7,
}


def drawing() -> Any:
    """Return a context manager with the plot style of the page."""
    return import_optional("matplotlib", purpose="a report", extra="report").rc_context(_STYLE)


def _panels(width: float = _WIDTH, height: float = 4.4, **options: Any) -> tuple[Any, Any]:
    figures = import_optional("matplotlib.figure", purpose="a report", extra="report")
    figure = figures.Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(**options)


def picture(figure: Any, name: str, caption: str, *, cursor: str | None = None) -> Plot:
    """Return a figure as SVG with ids that begin with `name`. The page draws a "point" or "line" (`cursor`) on it."""
    content = BytesIO()
    with warnings.catch_warnings():
        # Text is not converted to paths, so the browser finds fonts for glyphs that are missing here.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figure.savefig(content, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", content.getvalue().decode()))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {key.rpartition("}")[2]: _rename(value, key, name) for key, value in element.attrib.items()}
    width, height = (float(value) for value in root.attrib["viewBox"].split()[2:])
    size = {"viewBox": root.attrib["viewBox"], "width": f"{_PIXELS_PER_POINT * width:.0f}"}
    root.attrib = {**size, "role": "img", "aria-label": caption, "class": "plot"}
    if cursor is not None:
        axes = figure.axes[0]
        box = axes.get_position()
        corners = (box.x0 * width, box.x1 * width, (1 - box.y0) * height, (1 - box.y1) * height)
        root.attrib |= {"data-name": name, "data-cursor": cursor}
        root.attrib["data-axes"] = " ".join(f"{value:.6g}" for value in (*corners, *axes.get_xlim(), *axes.get_ylim()))
    return Plot(ElementTree.tostring(root, encoding="unicode"), caption)


def _rename(value: str, key: str, name: str) -> str:
    """Return the value of an attribute; an id, or a reference to an id, gets the name of the picture as a prefix."""
    if key == "id":
        return f"{name}-{value}"
    if value.startswith("#") and key.endswith("href"):
        return f"#{name}-{value[1:]}"
    return value.replace("url(#", f"url(#{name}-")


def drawn_classes(rows: ScoredRows, most: int = _MOST_CURVES) -> list[int]:
    """Return the indices of the classes that curves show: the second of two, or the `most` most frequent ones."""
    if len(rows.classes) == 2:
        return [1]
    frequent = np.argsort(-rows.totals, kind="stable")[:most]
    return sorted(set(frequent.tolist()) & set(rows.present))


def roc_plot(rows: ScoredRows, classes: Sequence[int], band: RocBand | None) -> Any:
    """Draw the ROC curve of each of `classes` against all others."""
    figure, axes = _panels()
    entries = {}
    for k in classes:
        fpr, tpr = _curve(rows, k, "roc")
        entries[rows.classes[k]] = RocEntry(fpr, tpr, (np.nan, np.nan, np.nan), band, None)
    display = RocCurveDisplay(entries).plot(axes)
    axes.legend(display.lines_, list(entries), loc="lower right")
    axes.set_ylim(0, 1)
    return figure


def precision_recall_plot(rows: ScoredRows, classes: Sequence[int], band: FloatArray | None) -> Any:
    """Draw the precision-recall curve of each of `classes` against all others."""
    figure, axes = _panels()
    for color, k in zip(COLORS, classes):
        cumulated = cumulate_class(rows, k)
        indices = thin(cumulated, _MOST_POINTS)[1:]
        recall = cumulated.tps[indices] / cumulated.tps[-1]
        axes.step(recall, cumulated.precision[indices], color=color, where="pre", label=rows.classes[k], clip_on=False)
        if len(classes) == 1:
            axes.axhline(float(rows.frequencies[k]), color="#6b747d", linestyle=":", linewidth=1.2, label="no skill")
    if band is not None:
        axes.fill_between(RECALLS, *band, color=COLORS[0], alpha=0.14, linewidth=0.0, label="95 % band")
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.legend(loc="best")
    return figure


def gains_plot(rows: ScoredRows) -> Any:
    """Draw the recall against the proportion of rows with the highest scores."""
    figure, axes = _panels()
    GainsDisplay({"model": tuple(_curve(rows, 1, "gains"))}, float(rows.frequencies[1])).plot(kind="gains", ax=axes)
    axes.set(**_AXES["gains"], ylim=(0, 1))
    return figure


def models_plot(scored: Mapping[str, ScoredRows], k: int, kind: str) -> Any:
    """Draw a curve for each model. Its name is below the diagonal; a line connects the name with a dot on the curve."""
    figure, axes = _panels()
    curves = [_curve(rows, k, kind) for rows in scored.values()]
    top = min(1.0, 1.05 * max(map(np.max, curves))) or 1.0
    axes.plot([0, top], [0, top], color="#6b747d", linestyle=":", linewidth=1.2)
    for i, (name, curve) in enumerate(zip(shorten(list(scored), 24), curves)):
        color, dash = COLORS[i], DASHES[i % len(DASHES)]
        axes.plot(*curve, color=color, linestyle=dash, marker="." if kind == "reliability" else "")
        dot_x = np.interp(0.06 + 0.34 * i / len(curves), [0, 1], curve[0][[0, -1]])
        dot = dot_x, np.interp(dot_x, *curve)
        line_style = {"arrowstyle": "-", "linewidth": 0.7, "relpos": (0.0, 0.5), "color": color}
        axes.plot(*dot, "o", color=color, markersize=4.5)
        text = 0.56, 0.05 + i * min(0.06, 0.4 / len(curves))
        axes.annotate(name, dot, text, "data", "axes fraction", color=color, fontsize=8, arrowprops=line_style)
    axes.set(**_AXES[kind], xlim=(0, top), ylim=(0, top), aspect="equal")
    return figure


def _curve(rows: ScoredRows, k: int, kind: str) -> FloatArray:
    """Return the points of a ROC, gains or calibration curve of a class, shape (2, n_points)."""
    if kind == "reliability":
        return np.array([(bin_.mean, bin_.observed) for bin_ in reliability(rows, k)]).T
    cumulated = cumulate_class(rows, k)
    x = cumulated.fps if kind == "roc" else cumulated.selected
    curve = np.array([x / x[-1], cumulated.tps / cumulated.tps[-1]])
    return np.asarray(curve[:, thin(cumulated, _MOST_POINTS)])


def dependence_plot(dependence: Dependence, classes: dict[str, int], limits: tuple[float, float], label: str) -> Any:
    """Draw the partial dependence on one column: a curve for numbers, dots for dates and categories."""
    figure, axes = _panels(3.4, 2.7)
    is_number, name = not isinstance(dependence.values[0], str), shortened(dependence.name, 32)
    curves = list(zip(COLORS, classes, classes.values(), dependence.means[:, list(classes.values())].T))
    if is_number:
        for color, class_name, k, means in curves:
            axes.plot(dependence.values, means, "o-", markersize=3, color=color, label=class_name)
            if dependence.missing_means is not None:
                style = {"color": color, "linestyle": ":", "linewidth": 1.2}
                axes.axhline(dependence.missing_means[k], label="where missing", **style)
        axes.set(xlabel=name, ylabel=label, ylim=limits)
        axes.locator_params(axis="x", nbins=5)
    else:
        indices = range(len(dependence.values))
        for color, class_name, _, means in curves:
            axes.plot(means, indices, "o", color=color, label=class_name)
        axes.set_yticks(indices, shorten(list(map(str, dependence.values)), 16))
        axes.set(xlabel=label, xlim=limits)
        axes.set_title(name, fontsize=9)
        axes.locator_params(axis="x", nbins=4)
        axes.margins(y=0.1)
        axes.invert_yaxis()
    if len(classes) > 1 or (is_number and dependence.missing_means is not None):
        axes.legend(loc="best")
    return figure


def reliability_plot(by_class: dict[str, list[Bin]]) -> Any:
    """Draw observed frequencies against mean probabilities, with intervals if there is one class."""
    figure, axes = _panels()
    has_intervals, drawn = len(by_class) == 1, [bin_ for bins in by_class.values() for bin_ in bins]
    top = max(max(bin_.high if has_intervals else bin_.observed, bin_.mean) for bin_ in drawn)
    top = min(1.0, 1.05 * top) or 1.0
    axes.plot([0, top], [0, top], color="#6b747d", linestyle=":", linewidth=1.2, label="calibrated")
    for color, (name, bins) in zip(COLORS, by_class.items()):
        means, observed, low, high = np.transpose([(bin_.mean, bin_.observed, bin_.low, bin_.high) for bin_ in bins])
        if has_intervals:
            whiskers = np.maximum([observed - low, high - observed], 0.0)
            axes.errorbar(means, observed, whiskers, color=color, linewidth=1.2, capsize=2.5)
        axes.plot(means, observed, "o-", color=color, markersize=4.5, linewidth=1.2, label=name)
    axes.set(**_AXES["reliability"], xlim=(0, top), ylim=(0, top), aspect="equal")
    axes.locator_params(nbins=6)  # tick labels of a rare class are long
    axes.legend(loc="upper left")
    return figure


def score_plot(rows: ScoredRows) -> Any:
    """Draw the distribution of the predicted probability of the positive class, for the rows of each class."""
    figure, axes = _panels(nrows=2, sharex=True)
    scores = rows.scores[:, 1]
    limits = (0.0, float(scores.max()) or 1.0)
    for k, panel in enumerate(axes):
        members = rows.labels == k
        weights = rows.weights[members] / rows.totals[k]
        panel.hist(scores[members], bins=40, range=limits, weights=weights, color=COLORS[1 - k], alpha=0.85)
        panel.set_ylabel("proportion")
        panel.set_title(f"{rows.classes[k]}: {int(members.sum()):,} rows", fontsize=9, loc="left")
    axes[1].set_xlabel("predicted probability")
    return figure


def thresholds_plot(thresholds: Thresholds) -> Any:
    """Draw metrics against the index of the threshold, which is also the position on the slider below the plot."""
    figure, axes = _panels(5.0, 3.6)
    indices = np.arange(thresholds.thresholds.size, dtype=np.float64)
    descending = threshold_curves(thresholds.tp[::-1], thresholds.fp[::-1])
    curves = {name: curve[::-1] for name, curve in descending.items()}
    display = ThresholdCurveDisplay(indices, curves, threshold=thresholds.model_index).plot(axes)
    for line, dash in zip(display.lines_.values(), DASHES):
        line.set(linestyle=dash, drawstyle="default")
    if display.mark_ is not None:
        display.mark_.set_label("model's own threshold")
    ticks = np.unique(np.linspace(0, indices.size - 2, min(6, indices.size - 1)).round().astype(int))
    axes.set_xticks(ticks, [number(thresholds.thresholds[index]) for index in ticks])
    axes.set(xlim=(0, indices.size - 1), xlabel="threshold (steps of about equally many rows)", ylabel="")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.24), ncols=3)
    return figure


def importance_plot(importance: PermutationImportance) -> Any:
    """Draw the importances of the most important features with their intervals."""
    figure, axes = _panels(height=0.8 + 0.27 * min(_MOST_FEATURES, len(importance.feature_names)))
    importance.plot(axes, max_features=_MOST_FEATURES)
    axes.set_xlim(max(axes.get_xlim()[0], -1.0), min(axes.get_xlim()[1], 1.0))
    axes.set_yticks(axes.get_yticks(), shorten([label.get_text() for label in axes.get_yticklabels()], 24))
    axes.set_xlabel("decrease of the ROC AUC")
    return figure


def mixture_plot(forest: Any) -> Any:
    """Draw the proportions of trees with each variant (criterion and splitter) and encoding in a mixed forest."""
    figure, axes = _panels()
    display = MixtureDisplay.from_estimator(forest, ax=axes)
    figure.set_figheight(0.8 + 0.3 * len(display.names))
    return figure


def trees_plot(forest: Any, training: Training) -> Any:
    """Draw the out-of-bag AUC against the number of trees."""
    figure, axes = _panels(height=2.9)
    with warnings.catch_warnings():
        # A class may have no row that is out of bag for the first trees. Such points are not drawn.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        display = OOBCurveDisplay.from_estimator(
            forest, training.X, training.y, n_points=12, sample_weight=training.sample_weight, ax=axes
        )
    axes.set(xscale="log", ylabel="out-of-bag ROC AUC")
    axes.minorticks_off()
    axes.set_xticks(display.n_trees[::-2], [f"{n:,.0f}" for n in display.n_trees[::-2]])
    return figure
