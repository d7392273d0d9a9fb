"""The elements of a page: tables, plots and sections, and the HTML text that contains them."""

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from aucforest._optional import import_optional
from aucforest.inspection.comparison import decimals

_LEAST_DECIMALS, _MOST_DECIMALS = 3, 5  # minimum and maximum number of decimals of an estimate
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Table(NamedTuple):
    """A table with row headers in the first column. `align` has "l" or "r" for the first columns; the rest have "r"."""

    caption: str
    columns: list[str]
    rows: list[list[str]]
    align: str = "l"


class Plot(NamedTuple):
    """A plot as an SVG element, and its caption."""

    svg: str
    caption: str


class Section(NamedTuple):
    """A section of the page: a heading, an introductory sentence, a list of sentences (`points`), plots and tables."""

    id: str
    heading: str
    lead: str
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()
    explorer: dict[str, Any] | None = None  # the data of the threshold explorer
    points: Sequence[str] = ()


def number(value: float, n_decimals: int | None = None) -> str:
    """Return a number with the given number of decimals, by default with about three digits; a dash if it is NaN."""
    size = abs(value)
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if n_decimals is not None:
        text = f"{round(value, n_decimals) or 0.0:,.{n_decimals}f}"  # `or` removes the sign of -0.0
    elif size >= 1000 or value == int(value):
        text = f"{value:,.0f}"
    elif size >= 0.01:
        text = f"{value:,.4g}" if size >= 1 else f"{value:.3f}"
    elif size >= 1e-4:
        text = f"{value:.{1 - math.floor(math.log10(size))}f}"
    else:
        text = f"{value:.1e}"
    return _spell(text)


def _spell(text: str) -> str:
    """Return a formatted number with a minus sign instead of a hyphen, and a power of ten instead of "e-05"."""
    digits, is_power, exponent = text.partition("e")
    raised = f" × 10{str(int(exponent)).translate(_SUPERSCRIPTS)}" if is_power else ""
    return digits.replace("-", "−") + raised


def numbers(values: Sequence[float]) -> list[str]:
    """Format numbers like `number`, with more digits if two different numbers would otherwise look equal."""
    texts, n_digits = [number(value) for value in values], 4
    while len(set(texts)) < len(set(values)):
        n_digits += 1
        texts = [_spell(f"{value:,.{n_digits}g}") for value in values]
    return texts


def signed(value: float, n_decimals: int | None = None) -> str:
    """Return a difference formatted like `number`, with a plus sign if it is positive."""
    is_positive = (value if n_decimals is None else round(value, n_decimals)) > 0
    return f"{'+' if is_positive else ''}{number(value, n_decimals)}"


def percent(proportion: float, n_decimals: int | None = None) -> str:
    """Return a proportion as a percentage. The proportion has `n_decimals` decimals, by default more near 0 and 1."""
    distance = min(proportion, 1.0 - proportion)
    if n_decimals is None:
        n_decimals = 3 if not 0.0 < distance < 0.0995 else 1 - math.floor(math.log10(distance))
    return f"{100 * proportion:.{max(n_decimals - 2, 0)}f} %"


def estimate(
    value: float, low: float, high: float, show: Callable[[float, int | None], str] = number, width: float | None = None
) -> list[str]:
    """Return two table cells: an estimate, and its interval, or a dash if the interval is NaN.

    The numbers have three to five decimals, so many that half of `width` is shown with two digits. By default, `width`
    is the width of the interval. If it is 0, or if five decimals are too few, `show` chooses the decimals.
    """
    width = high - low if width is None else width
    needed = max(decimals(0.0, width), _LEAST_DECIMALS) if width > 0.0 else _MOST_DECIMALS + 1
    n_decimals = None if needed > _MOST_DECIMALS else needed
    return [show(value, n_decimals), "–" if math.isnan(low) else f"{show(low, n_decimals)} to {show(high, n_decimals)}"]


def shortened(text: str, most: int) -> str:
    """Return a text, without its middle if it is longer than a maximum."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[most // 2 + 1 - most :]}"


def shorten(texts: Sequence[str], most: int) -> list[str]:
    """Shorten texts like `shortened`; texts that would look equal are cut around their first difference instead."""
    short = [shortened(text, most) for text in texts]
    for index, (text, brief) in enumerate(zip(texts, list(short))):
        alike = {other for other in texts if shortened(other, most) == brief}
        if len(alike) > 1:
            letters = enumerate(zip(min(alike), max(alike)))
            n_same = next((n for n, (one, other) in letters if one != other), len(min(alike)))
            start = max(n_same - most // 3, 1)
            short[index] = f"…{text[start : start + most - 2]}…"
    return short


def render(title: str, facts: dict[str, str], sections: list[Section], warnings: Sequence[str] = ()) -> str:
    """Return the HTML page. All text is escaped, and the content security policy allows only the script of the page."""
    jinja2 = import_optional("jinja2", purpose="a report", extra="report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("aucforest.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, program = (environment.loader.get_source(environment, name)[0] for name in ("style.css", "explorer.js"))
    digest = b64encode(sha256(program.encode()).digest()).decode()
    content = {"title": title, "facts": facts, "warnings": warnings, "sections": sections}
    page = environment.get_template("page.html")
    return str(page.render(content, style=style, program=program, program_hash=digest))
