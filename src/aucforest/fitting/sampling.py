"""How many rows of every class a tree draws."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucforest.fitting.bootstrap import BLOCK_ROWS, RowDraws

SCHEMES = ("bootstrap", "stratified", "balanced", "subsample")

# The share of distinct rows in a bootstrap, 1 - 1 / e: what a subsample without replacement takes.
_SUBSAMPLE = 0.632
# Rows are counted in 16 bits.
_MOST_DRAWS = 10_000


def resolve_draws(params: Mapping[str, Any], labels: NDArray[np.uint16], classes: NDArray[Any]) -> RowDraws | None:
    """Return how the trees of a forest with these parameters draw rows; None when every tree sees all rows."""
    sampling, max_samples, n_rows = params["sampling"], params["max_samples"], len(labels)
    if not params["bootstrap"]:
        for name, value in (("sampling", "bootstrap"), ("max_samples", None)):
            if params[name] != value:
                raise ValueError(f"{name}={params[name]!r} needs bootstrap=True")
        return None
    if isinstance(sampling, dict):
        if max_samples is not None:
            raise ValueError(f"max_samples={max_samples} cannot be combined with a dict as sampling")
        sizes = _sizes_of_rates(sampling, labels, classes)
    elif sampling == "subsample":
        default = max(1, round(_SUBSAMPLE * n_rows))
        return RowDraws.of_all(n_rows, _n_draws(max_samples, n_rows, default), replace=False)
    elif sampling == "bootstrap":
        return RowDraws.of_all(n_rows, _n_draws(max_samples, n_rows, n_rows))
    else:
        sizes = _sizes_of_classes(sampling, max_samples, np.bincount(labels, minlength=len(classes)))
    draws = RowDraws.of_strata(labels, sizes)
    if np.nanmax(draws.rates) > _MOST_DRAWS:
        k = int(np.nanargmax(draws.rates))
        raise ValueError(
            f"sampling: a bootstrap sample would hold each sample of class {classes.tolist()[k]!r}"
            f" {draws.rates[k]:.0f} times, more than {_MOST_DRAWS}"
        )
    return draws


def _n_draws(max_samples: Any, n_rows: int, default: int) -> int:
    """Return how many rows a tree draws in all."""
    if max_samples is None:
        return default
    if isinstance(max_samples, Integral):
        if int(max_samples) > n_rows:
            raise ValueError(f"max_samples={max_samples} must be at most {n_rows}, the number of samples")
        return int(max_samples)
    return max(1, round(n_rows * max_samples))


def _sizes_of_classes(sampling: str, max_samples: Any, n_rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Share the draws out to the classes by their rows, or evenly; a class with rows is drawn at least once."""
    present = n_rows > 0
    shares = n_rows / n_rows.sum() if sampling == "stratified" else present / np.count_nonzero(present)
    balanced = int(n_rows[present].min()) * int(np.count_nonzero(present))
    n_draws = _n_draws(max_samples, int(n_rows.sum()), balanced if sampling == "balanced" else int(n_rows.sum()))
    return np.where(present, np.maximum(np.rint(shares * n_draws), 1), 0).astype(np.int64)


def _sizes_of_rates(rates: dict[Any, float], labels: NDArray[np.uint16], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the draws of every class at these rates, 1 for a class that is not named."""
    unknown = [label for label in rates if label not in classes.tolist()]
    if unknown:
        raise ValueError(f"sampling has a rate for class {unknown[0]!r}, but y has the classes {classes.tolist()}")
    for label, rate in rates.items():
        if not (isinstance(rate, Real) and 0.0 < float(rate) < np.inf):
            raise ValueError(f"sampling: the rate of class {label!r} must be a positive number, but is {rate!r}")
    n_rows = np.bincount(labels, minlength=len(classes))
    wanted = n_rows * np.array([rates.get(label, 1.0) for label in classes.tolist()])
    return np.where(n_rows > 0, np.maximum(np.rint(wanted), 1), 0).astype(np.int64)


class Drawn(NamedTuple):
    """How trees drew their rows: trees of equal descriptions on the same rows can be drawn anew alike."""

    n_rows: int  # to draw from
    sizes: tuple[int, ...]  # draws of a tree by stratum; empty where each tree sees all rows
    replace: bool  # whether a row may be drawn again
    stream: str  # what distributed draws over blocks, whose numbers may change with its version; "" for one block

    def __str__(self) -> str:
        sizes = " + ".join(map(str, self.sizes)) or "all"
        return f"{sizes} of {self.n_rows} samples{'' if self.replace else ' without replacement'}"

    def check_stream(self) -> None:
        """Refuse to draw anew what another version of numpy drew: it may have drawn other rows."""
        here = stream_of(self.n_rows)
        if self.sizes and self.stream != here:
            raise ValueError(
                f"the bootstrap samples of this forest were drawn with {self.stream}, and {here} may draw different"
                f" ones: use {self.stream}, or fit the forest again"
            )


def stream_of(n_rows: int) -> str:
    """Return what distributes the draws of so many rows over blocks; within a block the package's own generator draws.

    NumPy promises the numbers of a `Generator` within a feature release alone.
    """
    return "" if n_rows <= BLOCK_ROWS else "numpy " + ".".join(np.__version__.split(".")[:2])


def describe_draws(draws: RowDraws | None, n_rows: int) -> Drawn:
    """Describe how trees draw their rows."""
    if draws is None:
        return Drawn(n_rows, (), True, "")
    return Drawn(n_rows, tuple(draws.sizes.tolist()), draws.replace, stream_of(n_rows))
