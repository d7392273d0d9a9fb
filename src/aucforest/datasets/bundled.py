"""Loaders of the data sets that the package includes. Their origin and licence are in data/README.md."""

import gzip
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from aucforest._optional import import_optional

_DATA = files("aucforest.datasets") / "data"


def load_abalone(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the abalone data: sizes, weights and numbers of rings of 4,177 shellfish.

    The target is the number of rings. ``rings >= 18`` is a rare class, with 3.3 % of the samples.

    Parameters
    ----------
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Whether to return data as a pandas DataFrame and target as a Series.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        - data : float64 array or DataFrame of shape (4177, 8). In the array, column "sex" is 0 for infants, 1 for
          females and 2 for males: pass ``categorical_features=[0]`` to forests. In the frame, the column is a pandas
          categorical of "I", "F", "M" with these codes.
        - target : int64 array or Series of shape (4177,), the rings, 1 to 29 (age in years: rings + 1.5).
        - feature_names, target_names : list of str
        - frame : DataFrame of shape (4177, 9) or None
        - DESCR : str, the description with origin and licence
        - filename : str
    (data, target) : tuple
        If ``return_X_y=True``.

    Raises
    ------
    ImportError
        If ``as_frame=True`` and pandas is not installed.

    References
    ----------
    Nash, Sellers, Talbot, Cawthorn, Ford: Abalone. UCI Machine Learning Repository, 1994. CC BY 4.0.

    Examples
    --------
    >>> from aucforest.datasets import load_abalone
    >>> X, rings = load_abalone(return_X_y=True)
    >>> X.shape, int((rings >= 18).sum())
    ((4177, 8), 136)
    """
    # Infants come first, so that a single threshold separates them from adults.
    bunch, categories = _read("abalone.csv", {"sex": ["I", "F", "M"]})
    return _as_returned(bunch, categories, return_X_y, as_frame)


def load_page_blocks(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the page-blocks data: 5,472 blocks of document pages, of five kinds. Four of the kinds are rare.

    Parameters
    ----------
    return_X_y, as_frame : bool, default=False
        As in `load_abalone`.

    Returns
    -------
    bunch or (data, target)
        As in `load_abalone`. The data have shape (5472, 10), and are sizes in pixels and proportions between 0 and 1.
        The target has shape (5472,), and contains int64 indices in ``target_names``.

    References
    ----------
    Malerba: Page Blocks Classification. UCI Machine Learning Repository, 1994. CC BY 4.0.

    Examples
    --------
    >>> import numpy as np
    >>> from aucforest.datasets import load_page_blocks
    >>> blocks = load_page_blocks()
    >>> dict(zip(blocks.target_names, np.bincount(blocks.target).tolist()))
    {'text': 4913, 'horizontal line': 329, 'picture': 28, 'vertical line': 87, 'graphic': 115}
    """
    bunch, categories = _read("page_blocks.csv", {})
    bunch.target -= 1  # The file has classes from 1 to 5.
    loaded = _as_returned(bunch, categories, return_X_y, as_frame)
    # Set last: `_as_returned` reads the name of the target column from target_names.
    bunch.target_names = ["text", "horizontal line", "picture", "vertical line", "graphic"]
    return loaded


def load_flights(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the flights data: 40,000 flights from New York in 2013 with the weather, 2.5 % of them cancelled.

    Flights at the same hour and airport have the same weather, and the weather of successive days is similar. So use
    whole weeks as test data; ``day`` has the day of each sample.

    Parameters
    ----------
    return_X_y, as_frame : bool, default=False
        As in `load_abalone`.

    Returns
    -------
    bunch or (data, target)
        As in `load_abalone`. The data have shape (40000, 17) and missing values. The target has shape (40000,), and is
        1 for a cancelled flight. The columns "carrier", "origin" and "dest" are categorical. In the array, they have
        codes from 0 in alphabetical order: pass ``categorical_features=[4, 5, 6]`` to forests. The Bunch also has

        - day : int64 array of shape (40000,), the day of the year from 1 to 365.

    References
    ----------
    Wickham: nycflights13, flights that departed NYC in 2013. R package, 2013. CC0.

    Examples
    --------
    >>> from aucforest.datasets import load_flights
    >>> flights = load_flights()
    >>> test = (flights.day - 1) // 7 % 3 == 2  # every third week
    >>> int(test.sum()), int(flights.target[test].sum())
    (13101, 334)
    """
    bunch, categories = _read("flights.csv.gz", dict.fromkeys(("carrier", "origin", "dest")))
    bunch.day = bunch.data[:, 0].astype(np.int64)
    bunch.data, bunch.feature_names = np.ascontiguousarray(bunch.data[:, 1:]), bunch.feature_names[1:]
    return _as_returned(bunch, categories, return_X_y, as_frame)


def _read(filename: str, categorical: Mapping[str, list[str] | None]) -> tuple[Bunch, dict[str, list[str]]]:
    """Return the data of a CSV file whose last column is an integer target, and the categories of its columns.

    `categorical` has the categories of each categorical column in the order of their codes; None sorts them.
    """
    raw = (_DATA / filename).read_bytes()
    lines = (gzip.decompress(raw) if filename.endswith(".gz") else raw).decode().splitlines()
    names = lines[0].split(",")
    texts = np.loadtxt(lines[1:], dtype=str, delimiter=",")
    table, categories = np.empty(texts.shape), {}
    for j, (name, values) in enumerate(zip(names, texts.T)):
        if name in categorical:
            present, codes = np.unique(values, return_inverse=True)
            categories[name] = categorical[name] or present.tolist()
            table[:, j] = np.array([categories[name].index(label) for label in present])[codes]
        else:
            table[:, j] = np.where(values == "", "nan", values).astype(np.float64)
    title = filename.split(".")[0] + "\n"
    sections = (_DATA / "README.md").read_text(encoding="utf-8").split("\n## ")
    bunch = Bunch(
        data=np.ascontiguousarray(table[:, :-1]),
        target=table[:, -1].astype(np.int64),
        frame=None,
        feature_names=names[:-1],
        target_names=names[-1:],
        DESCR=next(section for section in sections if section.startswith(title)),
        filename=filename,
    )
    return bunch, categories


def _as_returned(bunch: Bunch, categories: Mapping[str, list[str]], return_X_y: bool, as_frame: bool) -> Any:
    if as_frame:
        pandas = import_optional("pandas", purpose="as_frame=True", extra="frame")
        bunch.frame = pandas.DataFrame(bunch.data, columns=bunch.feature_names)
        for name, labels in categories.items():
            bunch.frame[name] = pandas.Categorical.from_codes(bunch.frame[name].astype(int), categories=labels)
        (target,) = bunch.target_names
        bunch.frame[target] = bunch.target
        bunch.data, bunch.target = bunch.frame[bunch.feature_names], bunch.frame[target]
    return (bunch.data, bunch.target) if return_X_y else bunch
