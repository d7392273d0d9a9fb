"""Text of pictures in scripts that the font of the page does not have."""

from functools import cache
from typing import Any

from aucforest._optional import import_optional


def make_readable(figure: Any) -> str:
    """Give text that its font cannot show another font of the machine, or else a number; return the list of numbers.

    matplotlib draws an empty box for a letter that the font lacks, and leaves too little room for what a browser with a
    better font shows there.
    """
    text = import_optional("matplotlib.text", purpose="a report", extra="report")
    numbers: dict[str, str] = {}
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        labels = axis.get_majorticklabels()
        shown = [_readable(label, numbers) for label in labels]
        if shown != [label.get_text() for label in labels]:  # the text of a tick comes from its axis at each drawing
            axis.set_ticklabels(shown)
    for artist in figure.findobj(text.Text):
        artist.set_text(_readable(artist, numbers))
    return "; ".join(f"{number} {label}" for label, number in numbers.items())


def _readable(artist: Any, numbers: dict[str, str]) -> str:
    """Return what a text shows: itself, perhaps in another font, or its number."""
    shown, families = artist.get_text(), artist.get_fontfamily()
    letters = frozenset(letter for letter in shown if letter.isprintable() and not _has(tuple(families), letter))
    if letters:
        others = _families_with(letters)
        if not others:
            return numbers.setdefault(shown, f"[{len(numbers) + 1}]")
        artist.set_fontfamily([*families, *others])
    return str(shown)


@cache
def _has(families: tuple[str, ...], letter: str) -> bool:
    """Return whether one of the font families has a glyph for a letter."""
    manager = import_optional("matplotlib.font_manager", purpose="a report", extra="report")
    fonts = (manager.get_font(manager.findfont(manager.FontProperties(family=family))) for family in families)
    return any(font.get_char_index(ord(letter)) for font in fonts)


@cache
def _families_with(letters: frozenset[str]) -> tuple[str, ...]:
    """Return installed font families that have all letters together, none if some letter is in no font.

    Fonts that come with matplotlib are for formulas, and color fonts have no outlines that it can measure.
    """
    matplotlib = import_optional("matplotlib", purpose="a report", extra="report")
    manager = import_optional("matplotlib.font_manager", purpose="a report", extra="report")
    entries = sorted((entry.name, entry.fname) for entry in manager.fontManager.ttflist if entry.style == "normal")
    lacking, families = set(letters), []
    for name, path in entries:
        if not lacking or path.startswith(matplotlib.get_data_path()) or name in families:
            continue
        font = manager.get_font(path)
        found = {letter for letter in lacking if font.scalable and font.get_char_index(ord(letter))}
        if found:
            lacking -= found
            families.append(name)
    return () if lacking else tuple(families)
