"""Training and prediction on tables that do not fit into memory."""

import os
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from typing import Any

from aucforest._files import file_beside
from aucforest._optional import import_optional
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.fitting.job import JobFolder, describe_fit
from aucforest.fitting.on_disk import FeatureBatches, RowsOnDisk
from aucforest.fitting.plan import parse_bytes
from aucforest.fitting.target import Target


def fit_out_of_core(
    forest: AUCForestClassifier,
    source: Any,
    target: str,
    *,
    sample_weight: str | None = None,
    positive: Any = None,
    drop: Sequence[str] = (),
    memory_limit: int | str = "2GiB",
    folder: str | os.PathLike[str] | None = None,
) -> AUCForestClassifier:
    """Fit a forest to a table that need not fit into memory.

    The forest is, bit for bit, the one that ``forest.fit`` grows from the same rows in memory.

    Parameters
    ----------
    forest : AUCForestClassifier
        Its parameters say what is grown, in how many threads, and whether progress is shown.
    source : path, list of paths, or object with ``__arrow_c_stream__``
        A Parquet or CSV file, several of one schema, or a folder of them, in the order of their names; or a table or
        query that can be read again and again, with its rows in the same order (its labels are compared): of pyarrow,
        polars, pandas or duckdb. A CSV has a header and is in UTF-8.
    target : str
        The column of class labels: text, flags, whole numbers, or a dictionary of them.
    sample_weight : str, default=None
        The column of row weights; a row of weight 0 is as if absent.
    positive : label, default=None
        This label against all others: the classes are False and True. Of numbers also a comparison, such as ">=18".
    drop : sequence of str, default=()
        Columns that are not learned from. All others are: numbers as numbers; text, flags and dictionaries as
        categories.
    memory_limit : int or str, default="2GiB"
        Bytes, such as ``500_000_000`` or ``"500MB"``, that the fit may take beside the forest itself, the interpreter
        and its libraries. Where the codes of all rows do not fit, trees are grown level by level. Labels and weights
        take 2 and 16 bytes a row in any case.
    folder : path-like, default=None
        Where codes and finished trees are kept, so that a fit that is killed goes on from there when it is called
        again; needs files and an integer `random_state`. The folder can be removed after the fit. By default
        codes lie in a temporary file, which takes a byte for each value.

    Returns
    -------
    forest : AUCForestClassifier
        The same object, fitted.

    Raises
    ------
    ValueError
        For data or parameters that `fit` refuses; columns that are neither numbers, text nor flags; a source that
        changes, or its order, while it is read; a memory_limit that is too small; a folder of another fit.
    TypeError
        For a source that can be read only once, or a single name in place of a list.
    ImportError
        Without pyarrow.
    OSError
        When files cannot be read or written, or the disk is full.

    Notes
    -----
    The source is read three times: for labels and weights; for a sample of the rows, all distinct values where they
    are few, and categories; and for the code of each value, one byte as long as ``max_bins`` is not None, in a file
    that is mapped into memory. Once more for out-of-bag probabilities, where `oob_score` or `threshold` needs them,
    and once before all of a CSV, for types that fit all rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.distributed import fit_out_of_core
    >>> table = pa.Table.from_pandas(load_breast_cancer(as_frame=True).frame)
    >>> forest = fit_out_of_core(AUCForestClassifier(20, random_state=0), table, "target")
    >>> forest.predict_proba(table.drop_columns("target")).shape
    (569, 2)
    """
    import_optional("pyarrow.parquet", purpose="training out of core", extra="arrow")
    from aucforest.tables.kinds import feature_names, find_column, to_features
    from aucforest.tables.labels import LabelReader, SteadyRows, read_target
    from aucforest.tables.sources import open_source

    forest._validate_params()
    limit, drop = parse_bytes(memory_limit, "memory_limit"), _as_names("drop", drop)
    table = open_source(source, as_text=[target])
    others = [target, *([] if sample_weight is None else [sample_weight]), *drop]
    for name in others:
        find_column(table, name)
    names = feature_names(table, others)
    reader = LabelReader(table, target, positive)
    rows = Target(*read_target(table, reader, sample_weight))
    # Files tell by themselves that they have changed.
    steady = SteadyRows(table, reader, rows.labels) if table.fingerprint() is None else table
    features, start, open_job = FeatureBatches(steady, names, to_features, rows), forest._start(), None
    if folder is not None:
        columns = {"target": target, "sample_weight": sample_weight, "positive": positive, "features": names}
        params, files = describe_fit(forest._params(), start.seed, rows, "folder"), table.fingerprint()
        if files is None:
            raise ValueError(f"folder needs files: nothing tells whether {table.name} is the same later")
        open_job = partial(JobFolder, folder, {**columns, **files, **params})
    with closing(RowsOnDisk(features, limit, open_job)) as held, forest._fitting():
        forest._fit_rows(held, start)
    return forest


def _as_names(name: str, columns: Sequence[str]) -> Sequence[str]:
    """Refuse a single name, whose letters would be taken for names."""
    if isinstance(columns, str):
        raise TypeError(f"{name} must be a list of columns, such as [{columns!r}], but is {columns!r}")
    return columns


def predict_out_of_core(
    model: Any,
    source: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    keep: Sequence[str] = (),
    proba: bool | None = None,
) -> Any:
    """Predict the rows of a table that need not fit into memory.

    Parameters
    ----------
    model : fitted classifier of this package
    source : path, list of paths, or object with ``__arrow_c_stream__``
        As in `fit_out_of_core`. The columns of the model are found by name, in any order; others are ignored. Those
        of a CSV are read as what they were in the fit, and kept as text.
    out : path-like, default=None
        A Parquet file to write, whole or not at all.
    keep : sequence of str, default=()
        Columns to hand on.
    proba : bool, default=None
        Probabilities only, or labels only; both by default.

    Returns
    -------
    iterator of pyarrow.RecordBatch, or int
        The columns to keep, the label as ``prediction``, and of each class the probability, such as
        ``probability_yes``; with `out` the number of rows instead.

    Raises
    ------
    ValueError
        For columns that are missing or not of the kind that the model was fitted on.
    TypeError
        For a source that can be read only once, or a single name in place of a list.
    ImportError
        Without pyarrow.
    OSError
        When files cannot be read or written.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sklearn.datasets import load_iris
    >>> from aucforest import AUCForestClassifier
    >>> from aucforest.distributed import predict_out_of_core
    >>> iris = load_iris(as_frame=True)
    >>> forest = AUCForestClassifier(20, random_state=0).fit(iris.data, iris.target)
    >>> batches = predict_out_of_core(forest, pa.Table.from_pandas(iris.frame), keep=["target"], proba=False)
    >>> next(batches).column_names
    ['target', 'prediction']
    """
    parquet = import_optional("pyarrow.parquet", purpose="prediction out of core", extra="arrow")
    from aucforest.tables.predictions import Predictions
    from aucforest.tables.sources import open_source

    predictions = Predictions(model, open_source(source, as_text=None), _as_names("keep", keep), proba)
    if out is None:
        return predictions.batches()
    n_rows = 0
    with file_beside(out) as beside, parquet.ParquetWriter(beside, predictions.schema) as writer:
        for batch in predictions.batches():
            writer.write_batch(batch)
            n_rows += batch.num_rows
    return n_rows
