"""What pictures have in common."""

from typing import Any, Self

from aucforest._optional import import_optional


class Display:
    """A picture of matplotlib, drawn by `plot`."""

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure of a fitting size.

        Returns
        -------
        Display
            Itself, with ``ax_``, ``figure_`` and its other attributes that end in an underscore.

        Raises
        ------
        ImportError
            Without matplotlib (extra ``plot``).
        """
        pyplot = import_optional("matplotlib.pyplot", purpose="plotting", extra="plot")
        self.ax_ = pyplot.subplots(figsize=self._size(), layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        return self

    def _size(self) -> tuple[float, float] | None:
        """Return width and height of a new figure in inches, None for those of matplotlib."""
        return None

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError
