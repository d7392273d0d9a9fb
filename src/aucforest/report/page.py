"""The elements of a page: tables, plots and sections, and the HTML text that contains them."""

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from aucforest._optional import import_optional

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Table(NamedTuple):
    """A table with row headers in the first column; `align` has an "l" or "r" for each column."""

    caption: str
    columns: list[str]
    rows: list[list[str]]
    align: str


class Plot(NamedTuple):
    """A plot as an SVG element, and its caption."""

    svg: str
    caption: str


class Section(NamedTuple):
    """A section of the page: a heading, an introductory sentence, and elements.

    `points` are sentences in a list. `explorer` has the data of the threshold explorer if it is part of the section.
    """

    id: str
    heading: str
    lead: str
    plots: list[Plot]
    tables: list[Table]
    explorer: dict[str, Any] | None = None
    points: Sequence[str] = ()


def number(value: float) -> str:
    """Return a number formatted to about three digits, or a dash if it is NaN."""
    size = abs(value)
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if size >= 1000 or value == int(value):
        text = f"{value:,.0f}"
    elif size >= 0.01:
        text = f"{value:,.4g}" if size >= 1 else f"{value:.3f}"
    elif size >= 1e-6:
        text = f"{value:.{1 - math.floor(math.log10(size))}f}"
    else:
        digits, exponent = f"{value:.1e}".split("e")
        text = f"{digits} × 10" + str(int(exponent)).translate(_RAISED)
    return text.replace("-", "−")


def signed(value: float) -> str:
    """Return a difference formatted with its sign."""
    return f"{'+' if value > 0 else ''}{number(value)}"


def interval(low: float, high: float, form: Callable[[float], str] = number) -> str:
    """Return an interval, with both ends formatted by a function."""
    return "–" if math.isnan(low) else f"{form(low)} to {form(high)}"


def percent(proportion: float) -> str:
    """Return a proportion formatted as a percentage, with more digits if it is small."""
    digits = 1 if proportion >= 0.0995 or proportion <= 0.0 else -1 - math.floor(math.log10(proportion))
    return f"{100 * proportion:.{digits}f} %"


def shortened(text: str, most: int) -> str:
    """Return a text, shortened to a maximum length."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def render(title: str, facts: dict[str, str], sections: list[Section], warnings: Sequence[str] = ()) -> str:
    """Return the page. All text is escaped, and the content security policy allows no other scripts."""
    jinja2 = import_optional("jinja2", purpose="a report", extra="report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("aucforest.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, program = (environment.loader.get_source(environment, name)[0] for name in ("style.css", "explorer.js"))
    page: str = environment.get_template("page.html").render(
        title=title,
        facts=facts,
        warnings=warnings,
        sections=sections,
        style=style,
        program=program,
        program_hash=b64encode(sha256(program.encode()).digest()).decode(),
    )
    return page
