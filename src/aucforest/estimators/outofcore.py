"""Training and prediction on tables that do not fit into memory."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Literal

from aucforest._caller import warn
from aucforest._files import file_beside
from aucforest._memory import parse_bytes, process_memory
from aucforest._optional import import_optional
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.fitting.job import JobFolder, check_seed, describe_fit
from aucforest.fitting.on_disk import FeatureBatches, RowsOnDisk
from aucforest.fitting.target import Target
from aucforest.metrics.validation import check_option

# Bytes of machine code and libraries that the first fit of a process loads, as measured.
_LOADED_BYTES = 10**8
# The memory in use is rounded up to a multiple of this, so that repeated calls with a memory_limit that is too small
# raise the same error.
_ROUNDED_TO = 2**24


def fit_out_of_core(
    forest: AUCForestClassifier,
    source: Any,
    target: str,
    *,
    sample_weight: str | None = None,
    groups: str | None = None,
    positive: Any = None,
    drop: Sequence[str] = (),
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    date_format: str | None = None,
    stray_text: Literal["number", "text"] = "number",
    memory_limit: int | str = "2GiB",
    folder: str | os.PathLike[str] | None = None,
) -> AUCForestClassifier:
    """Fit a forest to a table that is larger than memory.

    The forest is bitwise identical to the one that ``forest.fit`` grows from the same rows in memory.

    Parameters
    ----------
    forest : AUCForestClassifier
        The forest to fit.
    source : path, list of paths, or table
        A Parquet, CSV (.csv, .tsv), JSON lines (.jsonl) or Excel (.xlsx) file, a list of such files with the same
        columns, or a folder of them, which are read in the order of their names. Text files may be compressed (.csv.gz,
        .csv.zst), and CSV files need a header. Or a pyarrow, polars, pandas or duckdb table or query, which must return
        its rows in the same order each time.
    target : str
        The column of class labels: strings, booleans or integers, which may be dictionary-encoded.
    sample_weight, groups : str, default=None
        The columns of sample weights and of groups. See `AUCForestClassifier.fit`.
    positive : label, default=None
        The positive label, or for numbers a comparison such as ">=18". With either, the classes are True and False.
    drop : sequence of str, default=()
        Columns that are no features. Features of strings, booleans and dictionary-encoded values are categorical.
    separator : str, default=None
        The separator of the values in a CSV file. By default the character that splits the header into most columns.
    encoding : str, default=None
        The encoding of text, such as ``"cp1252"``. By default UTF-8, or UTF-16 if the file has a byte order mark.
    decimal, thousands : {".", ","}, default=None
        The decimal mark, or the thousands separator, for columns of text whose numbers are ambiguous, such as 12,345.
        By default it is inferred from the other columns. If this is impossible, the column is text, with a warning.
    date_format : str, default=None
        The format of dates in text, such as ``"%m/%d/%Y"``. By default it is inferred from the values and, if the order
        of day and month is ambiguous, from the other columns. If this is impossible, the column is categorical.
    stray_text : {"number", "text"}, default="number"
        How to read a column of numbers or dates with other text, such as "unknown", in fewer than 10 % of its values.
        Zeros for a missing date, such as 0000-00-00, do not count as text. With "number", the other text is read as
        missing values, with a warning. With "text", the column is categorical.
    memory_limit : int or str, default="2GiB"
        The maximum memory of the fit in bytes, such as ``500_000_000`` or ``"500MB"``, in addition to the forest and to
        the memory of the process before the call. It includes 2 bytes a row for labels, 16 for weights and 8 for
        groups. If the binned data exceed it, each tree grows from a copy of its bootstrap rows, so a smaller
        `max_samples` needs less memory.
    folder : path-like, default=None
        Checkpoint folder for trees, and for the temporary file of binned data. To resume a fit that was killed, call
        the function again: it reads all rows, but grows only the missing trees. Needs files as `source` and an integer
        `random_state`. The folder can be deleted after the fit.

    Returns
    -------
    forest : AUCForestClassifier
        The same object, fitted.

    Raises
    ------
    ValueError
        As in `AUCForestClassifier.fit`, or if a column has an unsupported type, if the source or its order changes
        between readings, if `memory_limit` is too small, or if `folder` belongs to another fit.
    TypeError
        If the source can be read only once, `drop` is not a list, or the model is not an `AUCForestClassifier`.
    ImportError
        If pyarrow is not installed, or duckdb for files of text.
    OSError
        If files cannot be read or written.

    Notes
    -----
    The source is read three times: for labels and weights, for bins and categories, and for binning. Binning writes a
    memory-mapped file with one byte for each value (unless ``max_bins=None``), and one to three bytes more for each
    value of a column with target rates. A fit that needs more than `memory_limit` is refused after the second
    reading. The source is read once more if `oob_score` or `threshold` needs out-of-bag probabilities. Text files are
    first read several times to determine the types of their columns; warnings state how numbers and dates are read.

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
    from aucforest.tables.kinds import check_has_columns, feature_names
    from aucforest.tables.labels import LabelReader, SteadyRows, numeric_columns, read_labels
    from aucforest.tables.read_options import ReadOptions
    from aucforest.tables.sources import open_source, stray_notes

    if not isinstance(forest, AUCForestClassifier):
        raise TypeError(f"fit_out_of_core needs an AUCForestClassifier, got {type(forest).__name__}: fit it in memory")
    forest._validate_params()
    check_option("stray_text", stray_text, ("number", "text"))
    parse_bytes(memory_limit, "memory_limit")
    baseline = process_memory()
    reserved = [target, *(name for name in (sample_weight, groups) if name is not None)]
    left_out = [*reserved, *_as_names("drop", drop)]
    # In text files, `reserved` columns are read as strings. `feature_names` converts weights, and labels that are
    # compared with a number, to numbers.
    table = open_source(source, reserved, ReadOptions(separator, encoding, decimal, thousands, date_format, stray_text))
    check_has_columns(table, *left_out)
    reader = LabelReader(table, target, positive)
    names = feature_names(table, left_out, numeric_columns(reader, sample_weight))
    for sentence in stray_notes(table, names):
        warn(sentence)
    rows = Target(*read_labels(table, reader, sample_weight, groups))
    for sentence in reader.alike_notes():
        warn(sentence)
    # Files are checked for changes by their size and modification time, other sources by their labels.
    steady = SteadyRows(table, reader, rows.labels) if table.fingerprint() is None else table
    features = FeatureBatches.of(steady, names, rows, forest._params())
    columns = {"target": target, "sample_weight": sample_weight, "positive": positive}
    columns |= {} if groups is None else {"groups": groups}
    return fit_source(forest, features, columns, memory_limit=memory_limit, folder=folder, baseline=baseline)


def fit_source(
    forest: AUCForestClassifier,
    features: FeatureBatches,
    columns: dict[str, Any],
    *,
    memory_limit: int | str,
    folder: str | os.PathLike[str] | None,
    baseline: int = 0,
) -> AUCForestClassifier:
    """Fit a forest to the features of an opened source.

    `columns` are settings that identify the fit in `folder`, together with the forest, the features and the files.
    `baseline` is the memory of the process in bytes before the call, which does not count towards the limit.
    """
    source, names, rows = features.source, features.names, features.target
    start, open_job = forest._start(), None
    if folder is not None:
        check_seed(forest._params(), "folder")
        params, files = describe_fit(forest._params(), start.seed, rows), source.fingerprint()
        if files is None:
            raise ValueError(f"folder needs files as source: {source.name} may be different at the next call")
        open_job = partial(JobFolder, folder, {**columns, "features": names, **files, **params})
    limit = parse_bytes(memory_limit, "memory_limit")
    used = max(process_memory() + _LOADED_BYTES - baseline - rows.nbytes, 0)
    used = -(-used // _ROUNDED_TO) * _ROUNDED_TO
    with closing(RowsOnDisk(features, limit, open_job, used=used)) as table, forest._fitting():
        forest._fit_rows(table, start)
    written = source.text_formats
    if formats := {name: written[name] for name in names if name in written}:
        forest.text_formats_ = formats
    return forest


def _as_names(name: str, columns: Sequence[str]) -> Sequence[str]:
    """Return the names; raise TypeError if a single string is given."""
    if isinstance(columns, str):
        raise TypeError(f"{name} must be a list of column names, such as [{columns!r}], but is {columns!r}")
    return columns


def predict_out_of_core(
    model: Any,
    source: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    keep: Sequence[str] = (),
    proba: bool | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    date_format: str | None = None,
    stray_text: Literal["number", "text"] = "number",
) -> Any:
    """Predict the rows of a table that is larger than memory.

    Parameters
    ----------
    model : AUCForestClassifier, AUCStackingClassifier, AUCTreeClassifier or LinearAUCClassifier
        A fitted classifier.
    source : path, list of paths, or table
        As in `fit_out_of_core`. Columns are matched by name, and others are ignored. Columns of text files are
        converted to the types seen in `fit`.
    out : path-like, default=None
        A Parquet file to write.
    keep : sequence of str, default=()
        Columns of the source to include in the result.
    proba : bool, default=None
        Whether to return probabilities only (True) or labels only (False). By default both.
    separator, encoding, decimal, thousands, date_format : str, default=None
        The format of text, as in `fit_out_of_core`. By default numbers and dates are read as in the file that the
        model was fitted to.
    stray_text : {"number", "text"}, default="number"
        How to read text in fewer than 10 % of the values of a numeric column: "number" reads it as missing values, with
        a warning; "text" raises an error.

    Returns
    -------
    iterator of pyarrow.RecordBatch, or int
        The columns in `keep`, the predicted label as ``prediction``, and the probability of each class, for example as
        ``probability_yes``. With `out`, the number of rows that were written. After the last batch, a warning names
        the columns with categories that training has not seen.

    Raises
    ------
    ValueError
        If columns are missing or their type differs from that seen in `fit`, or for text in a numeric column.
    TypeError
        If the source can be read only once, or `keep` is not a list.
    ImportError, OSError
        As in `fit_out_of_core`.

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
    from aucforest.tables.read_options import ReadOptions
    from aucforest.tables.sources import open_source

    check_option("stray_text", stray_text, ("number", "text"))
    table = open_source(source, None, ReadOptions(separator, encoding, decimal, thousands, date_format, stray_text))
    predictions = Predictions(model, table, _as_names("keep", keep), proba)
    for sentence in predictions.stray_notes:
        warn(sentence)
    if out is None:
        return _batches(predictions)
    n_rows = 0
    with file_beside(out) as beside, parquet.ParquetWriter(beside, predictions.schema) as writer:
        for batch in _batches(predictions):
            writer.write_batch(batch)
            n_rows += batch.num_rows
    return n_rows


def _batches(predictions: Any) -> Iterator[Any]:
    """Yield record batches of predictions; after the last, warn of categories that training has not seen."""
    yield from predictions.batches()
    for sentence in predictions.unseen_notes:
        warn(sentence)
