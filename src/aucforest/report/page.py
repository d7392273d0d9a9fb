"""From metrics to the page: tables, pictures, and one HTML text that needs nothing else."""

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from aucforest._optional import import_optional

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Table(NamedTuple):
    """A table whose first column heads its rows; `align` has an "l" or an "r" a column."""

    caption: str
    columns: list[str]
    rows: list[list[str]]
    align: str


class Plot(NamedTuple):
    """A picture as an SVG element, and what stands below it."""

    svg: str
    caption: str


class Section(NamedTuple):
    """A part of the page: a heading, a sentence that says what it shows, and what is shown.

    `explorer` holds what the threshold explorer needs, where it belongs to the section; `points` are listed sentences.
    """

    id: str
    heading: str
    lead: str
    plots: list[Plot]
    tables: list[Table]
    explorer: dict[str, Any] | None = None
    points: Sequence[str] = ()


def number(value: float) -> str:
    """Return a number as it is printed, to about three digits; a dash for what is not known."""
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
    """Return a difference as it is printed."""
    return f"{'+' if value > 0 else ''}{number(value)}"


def interval(low: float, high: float, form: Callable[[float], str] = number) -> str:
    """Return the ends of an interval as they are printed, each in the form given."""
    return "–" if math.isnan(low) else f"{form(low)} to {form(high)}"


def percent(proportion: float) -> str:
    """Return a proportion as it is printed: small ones with more digits."""
    digits = 1 if proportion >= 0.0995 or proportion <= 0.0 else -1 - math.floor(math.log10(proportion))
    return f"{100 * proportion:.{digits}f} %"


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many letters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def render(title: str, facts: dict[str, str], sections: list[Section], warnings: Sequence[str] = ()) -> str:
    """Return the page; all text is escaped, and a browser runs no program but the page's own."""
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
