"""Training and prediction on tables that do not fit into memory."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from tqdm import tqdm

from aucforest._files import file_beside
from aucforest._optional import import_optional
from aucforest.estimators._coded_fit import CodedFit, RunningSums, Source, Target
from aucforest.estimators._looks import Features, look_for_coding, sum_out_of_bag, write_codes
from aucforest.estimators.forest import AUCForestClassifier
from aucforest.fitting.checkpoint import Checkpoint, grow_missing
from aucforest.fitting.claims import Claim, describe_fit
from aucforest.fitting.code_matrix import CODES, RECORD, CodeMatrix
from aucforest.fitting.coding import Coding
from aucforest.fitting.coding_file import CODING, read_coding, write_coding
from aucforest.fitting.executor import LocalExecutor
from aucforest.fitting.growing import grow_batches
from aucforest.fitting.growth_params import GrowthParams
from aucforest.fitting.level import grow_by_level
from aucforest.fitting.parts import cut_into_parts, describe_growth
from aucforest.fitting.plan import Plan, parse_bytes, plan_fit
from aucforest.fitting.sampling import resolve_draws
from aucforest.tree.tree import Tree

_FILES = re.compile("|".join(map(re.escape, (CODES, RECORD, CODING))))
_TREES = "trees"


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
        A Parquet file, several of one schema, or a folder of them, in the order of their names; or a table or query
        that can be read again and again, with its rows in the same order (its labels are compared): of pyarrow,
        polars, pandas or duckdb.
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
        again; needs Parquet files and an integer `random_state`. The folder can be removed after the fit. By default
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
    that is mapped into memory. Once more for out-of-bag probabilities, where `oob_score` or `threshold` needs them.

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
    from aucforest.tables.features import feature_names, to_features
    from aucforest.tables.kinds import find_column
    from aucforest.tables.labels import LabelReader, SteadyRows, read_target
    from aucforest.tables.sources import open_source

    forest._validate_params()
    limit, drop = parse_bytes(memory_limit, "memory_limit"), _as_names("drop", drop)
    table = open_source(source)
    others = [target, *([] if sample_weight is None else [sample_weight]), *drop]
    for name in others:
        find_column(table, name)
    names = feature_names(table, others)
    reader = LabelReader(table, target, positive)
    classes, labels, weights = read_target(table, reader, sample_weight)
    rows = Target([(classes, labels)], weights)
    fit = CodedFit(forest, rows)
    plan = plan_fit(forest, rows, _foresee(forest, rows, names), len(names), limit)
    if forest.verbose:
        tqdm.write(f"{len(labels):,} rows of {len(names)} features: {plan}", file=sys.stderr)
    # Files tell by themselves that they have changed.
    steady = SteadyRows(table, reader, labels) if table.fingerprint() is None else table
    features = Features(steady, names, to_features, rows)
    manifest = None
    if folder is not None:
        manifest = _manifest(forest, fit.seed, table, rows, names, target, sample_weight, positive)
    with ExitStack() as stack:
        work = _Work.begin(stack, folder, manifest, forest, features, fit)
        fit.finish(Source(names, work.coding, work.matrix.known, partial(work.grow, plan), work.sum_out_of_bag))
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
        As in `fit_out_of_core`. The columns of the model are found by name, in any order; others are ignored.
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

    predictions = Predictions(model, open_source(source), _as_names("keep", keep), proba)
    if out is None:
        return predictions.batches()
    n_rows = 0
    with file_beside(out) as beside, parquet.ParquetWriter(beside, predictions.schema) as writer:
        for batch in predictions.batches():
            writer.write_batch(batch)
            n_rows += batch.num_rows
    return n_rows


def _foresee(forest: AUCForestClassifier, rows: Target, names: list[str]) -> GrowthParams:
    """Return what trees need to know, before it is known which values are categories."""
    twin = clone(forest)
    twin.classes_, twin.categories_ = rows.classes, {}
    twin.n_features_in_, twin.feature_names_in_ = len(names), np.array(names, dtype=object)
    draws = resolve_draws(forest, rows.kept_labels, rows.classes)
    return GrowthParams.resolve(twin, len(rows.kept_labels), len(names), draws)


def _manifest(
    forest: AUCForestClassifier,
    seed: int,
    table: Any,
    rows: Target,
    names: list[str],
    target: str,
    sample_weight: str | None,
    positive: Any,
) -> dict[str, Any]:
    """Return what tells a fit from others."""
    description = describe_fit(forest, seed, "folder")
    files = table.fingerprint()
    if files is None:
        raise ValueError(f"folder needs Parquet files: nothing tells whether {table.name} is the same later")
    digest = crc32(rows.labels.data, 0 if rows.sample_weight is None else crc32(rows.sample_weight.data))
    columns = {"target": target, "sample_weight": sample_weight, "positive": positive, "features": names}
    return {**files, **columns, "the digest of the labels": digest, **description}


@dataclass
class _Work:
    """What a fit has written: codes and, in a folder that is kept, trees."""

    forest: AUCForestClassifier
    features: Features
    coding: Coding
    matrix: CodeMatrix
    checkpoint: Checkpoint | None

    @classmethod
    def begin(
        cls,
        stack: ExitStack,
        folder: str | os.PathLike[str] | None,
        manifest: dict[str, Any] | None,
        forest: AUCForestClassifier,
        features: Features,
        fit: CodedFit,
    ) -> "_Work":
        """Write codes, or what of them is not there."""
        coding, checkpoint, path, id_ = None, None, None, None
        n_threads = effective_n_jobs(forest.n_jobs)
        if folder is not None and manifest is not None:
            claim = stack.enter_context(Claim(folder, manifest, _FILES))
            path, id_ = claim.folder, claim.fit
            coding = read_coding(path, id_, len(features.names))
        if coding is None:
            coding = look_for_coding(features, forest, fit, n_threads)
            if path is not None and id_ is not None:
                write_coding(path, coding, id_)
        shape = len(features.names), len(features.target.kept_labels)
        if path is not None:
            n_classes = len(features.target.classes)
            checkpoint = stack.enter_context(Checkpoint(path / _TREES, {"fit": id_}, shape[0], n_classes, coding.kinds))
        matrix = CodeMatrix(path, coding.n_bins, shape[1], len(fit.scored), id_)
        write_codes(features, coding, fit.scored, matrix, n_threads, forest.verbose)
        return cls(forest, features, coding, matrix, checkpoint)

    def sum_out_of_bag(self, bags: Any, packed: Any, ranges: Sequence[range]) -> list[Any]:
        """Sum out of bag over all rows of the source."""
        sums = RunningSums(bags, packed, ranges, len(self.features.target.labels))
        n_threads = effective_n_jobs(self.forest.n_jobs)
        sum_out_of_bag(self.features, self.coding, sums, n_threads, self.forest.verbose)
        return sums.sums

    def grow(
        self, plan: Plan, params: GrowthParams, keys: list[int], weights: NDArray[np.float64] | None
    ) -> list[Tree]:
        """Grow the trees that are not there yet."""
        grow = partial(self._grow_some, plan, params, weights)
        return grow_missing(self.forest.n_estimators, keys, self.checkpoint, grow)

    def _grow_some(
        self, plan: Plan, params: GrowthParams, weights: NDArray[np.float64] | None, keys: list[int]
    ) -> Iterator[tuple[Sequence[int], list[Tree]]]:
        """Yield trees as they are done, with the places of their keys."""
        training = self.features.target.training_set(self.matrix.codes, self.coding, weights)
        if plan.levels is None:
            place = 0
            for trees in grow_batches(training, params, keys, plan.n_threads, self.forest.verbose):
                yield range(place, place + len(trees)), trees
                place += len(trees)
            return
        bounds = [*range(0, len(training.labels), plan.levels.part_rows), len(training.labels)]
        parts, growth = cut_into_parts(training, params.draws, bounds), describe_growth(training, params)
        sizes = {"local_rows": plan.levels.local_rows, "max_hist_bytes": plan.levels.max_hist_bytes}
        with (
            LocalExecutor(plan.n_threads) as executor,
            tqdm(total=len(keys), desc="trees", disable=not self.forest.verbose) as progress,
        ):
            for place, tree in grow_by_level(parts, growth, keys, executor, **sizes):
                yield [place], [tree]
                progress.update()
