"""Base classes of the plots, and of the results that notebooks show as tables."""

import html
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from aucforest._optional import import_optional


class HtmlTable:
    """Base of results that a notebook shows as a table below the first line of their repr."""

    _table: Callable[[], Any]  # returns the pandas DataFrame to show

    def _repr_html_(self) -> str | None:
        """Return the table as HTML; None without pandas, so that the repr is shown."""
        try:
            table = self._table().to_html(float_format="{:.6g}".format, na_rep="")
        except ImportError:
            return None
        return f"<p>{html.escape(repr(self).splitlines()[0])}</p>{table}"


class Display:
    """Base of the matplotlib visualizations. `plot` sets ``ax_``, ``figure_`` and further attributes."""

    _draw: Callable[..., None]  # draws on the axes, and takes the options of `_plot`

    def plot(self, ax: Any = None) -> Self:
        """Plot the visualization.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            The axes to plot on. By default a new figure is created.

        Returns
        -------
        Display
            The object itself, with ``ax_``, ``figure_`` and other fitted attributes.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return self._plot(ax)

    def _plot(self, ax: Any, **options: Any) -> Self:
        """Plot the visualization, and pass the options to `_draw`."""
        pyplot = import_optional("matplotlib.pyplot", purpose="plotting", extra="plot")
        if ax is None:
            _, ax = pyplot.subplots(**self._panels(), figsize=self._size(), layout="constrained")
        self.ax_ = ax
        self.figure_ = np.ravel(ax)[0].figure
        self._draw(ax, **options)
        return self

    def _panels(self) -> dict[str, Any]:
        """Return the parameters of `matplotlib.pyplot.subplots` for a plot of several axes."""
        return {}

    def _size(self) -> tuple[float, float] | None:
        """Return the width and height of a new figure in inches, None for the default."""
        return None
