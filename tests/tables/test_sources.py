"""Sources are read several times, from any row on: files with one schema, and tables of other libraries."""

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from aucforest.tables.read_options import ReadOptions
from aucforest.tables.sources import open_source, stray_notes
from tests.tables.text_tables import read_all, write_column, write_table


def table(n=50):
    return pa.table({"a": range(n), "b": [f"t{i % 7}" for i in range(n)], "c": [i / 2 for i in range(n)]})


@pytest.fixture
def folder(tmp_path):
    """A folder with three Parquet files of one table, with row groups of different sizes, and files to be ignored."""
    rows = table()
    for name, part, size in [("2", rows[20:20], 5), ("1", rows[:20], 7), ("3", rows[20:], 40)]:
        pq.write_table(part, tmp_path / f"part{name}.parquet", row_group_size=size)
    for name in ("notes.md", ".hidden.parquet", "_temporary.parquet", "~$part1.parquet"):
        (tmp_path / name).write_text("no table")
    return tmp_path


def test_all_sources_return_the_same_rows_at_each_reading(folder):
    whole, files = pa.concat_tables([table()[:33], table()[33:]]), sorted(folder.glob("part*.parquet"))
    sources = {
        "folder": folder, "text": str(folder), "files": files, "table": whole,
        "dataset": pyarrow.dataset.dataset([str(file) for file in files]), "polars": pl.DataFrame(whole),
        "pandas": whole.to_pandas(), "duckdb": duckdb.from_arrow(whole),
    }  # fmt: skip
    for name, given in sources.items():
        source = open_source(given)
        assert source.columns == ["a", "b", "c"], name
        for first_row in (0, 0, 1, 6, 7, 20, 33, 49, 50):
            batches = list(source.batches(["c", "a"], first_row, 8))
            assert all(0 < batch.num_rows <= 8 for batch in batches), name
            assert all(batch.schema.names == ["c", "a"] for batch in batches), name
            read = [value for batch in batches for value in batch.column("a").to_pylist()]
            assert read == list(range(first_row, 50)), (name, first_row)
    assert open_source(sources["dataset"])._reader(["c"]).schema.names == ["c"]


def test_location_is_the_file_and_the_number_of_the_row(folder):
    source = open_source(folder)
    wanted = {0: "part1.parquet, row 1", 19: "part1.parquet, row 20", 20: "part3.parquet, row 1"}
    assert {row: source.location(row) for row in wanted} == wanted
    assert open_source(table()).location(4) == "the Table, row 5"
    assert open_source([folder / "part1.parquet"]).name == "part1.parquet"


def test_fingerprints_differ_between_files(folder):
    before = open_source(folder).fingerprint()
    assert before == open_source(str(folder)).fingerprint()
    assert before["n_rows"] == open_source(folder).n_rows == 50
    pq.write_table(table()[20:], folder / "part3.parquet", row_group_size=30)
    assert open_source(folder).fingerprint() != before
    assert open_source(table()).fingerprint() is None


def test_a_file_that_changes_while_it_is_read(folder):
    source = open_source(folder)
    pq.write_table(table(), folder / "part3.parquet")
    with pytest.raises(ValueError, match=r"part3.parquet changed"):
        list(source.batches(["a"]))


def test_tables_that_are_refused(tmp_path, folder):
    (tmp_path / "empty").mkdir()
    (tmp_path / "outer" / "c=1.parquet").mkdir(parents=True)
    for name in ("broken.parquet", "broken"):
        (tmp_path / name).write_bytes(b"PAR1")

    cases = [
        *((name, ValueError, "^there is no file") for name in ("none.parquet", "s3://bucket/x.csv", "*.csv")),
        (tmp_path / "empty", ValueError, "has no tables: .csv, .tsv, .txt, .jsonl or .ndjson"),
        (tmp_path / "broken.parquet", ValueError, "cannot read .*broken.parquet"),
        (tmp_path / "outer", ValueError, "or .parquet; folders in it are not read: pass one of these$"),
        (tmp_path / "broken", ValueError, "cannot read .*broken: .*Parquet.* let its name end in .csv, .tsv"),
        (pa.table([[1], [2]], names=["a", "a"]), ValueError, "the Table has two columns named 'a'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "the DataFrame has two columns named 'a'"),
        (pd.Series([1]), TypeError, "source is a Series: pass a table"),
        (pl.Series([1]), TypeError, "source is a Series: pass a table"),
        (pl.DataFrame({"a": [1]}, {"a": pl.Int128}), ValueError, "the DataFrame has a type that Arrow does not have"),
        (pl.LazyFrame({"a": [1]}), TypeError, r"source is a LazyFrame: pass source.collect\(\)"),
        (table().to_reader(), TypeError, "a RecordBatchReader can be read only once, but"),
        (iter(table().to_batches()), TypeError, "can be read only once"), ([], ValueError, "source is an empty list"),
        ([tmp_path / "empty"], ValueError, "empty is a folder: pass it by itself"), (3, TypeError, "is a int"),
    ]  # fmt: skip
    for given, error, sentence in cases:
        with pytest.raises(error, match=sentence):
            open_source(given)
    for part, sentence in [
        (table().drop_columns("c"), "other.parquet differs from part1.parquet in column 'c'"),
        (table().append_column("d", [[0] * 50]), "in column 'd'"),
        (table().append_column("c", [[0] * 50]), "other.parquet has two columns named 'c'"),
        (table().set_column(0, "a", table()["a"].cast(pa.string())), "'a' is int64 in part1.parquet, but string in"),
    ]:
        pq.write_table(part, tmp_path / "other.parquet")
        with pytest.raises(ValueError, match=sentence):
            open_source([folder / "part1.parquet", tmp_path / "other.parquet"])


MOMENT, DICTIONARY = pa.array([0], pa.timestamp("ms")), pa.dictionary(pa.int32(), pa.string())
CODES = pa.array(["x"], DICTIONARY)


@pytest.mark.parametrize(("arrays", "wanted"), [
    ([pa.array([1], pa.int32()), pa.array([2**53 + 1]), pa.nulls(1)], pa.int64()),
    ([pa.array([1]), pa.array([2.5])], pa.float64()), ([pa.array([2.5]), pa.array([2**53])], pa.float64()),
    ([pa.array([2.5]), pa.array([2**53 + 1])], "^cannot read .*1.parquet: column 'a': Integer value 90071992"),
    ([pa.array([1], pa.decimal128(10, 2)), pa.array([2], pa.decimal128(12, 2))], pa.decimal128(12, 2)),
    ([pa.array([1], pa.decimal128(10, 2)), pa.array([2], pa.float32())], r"'a' is decimal128\(10, 2\) in 0.parq"),
    ([MOMENT, MOMENT.cast(pa.timestamp("ns"))], pa.timestamp("ns")),
    ([MOMENT, MOMENT.cast(pa.timestamp("ms", "UTC"))], r"'a' is timestamp\[ms\] in 0.parquet, but timestamp\[ms,"),
    ([CODES, pa.nulls(1), CODES.cast(pa.string()), pa.array(["z"], pa.large_string())], pa.large_string()),
    ([CODES, CODES, CODES], DICTIONARY), ([pa.array(["z"], pa.string_view()), CODES], pa.large_string()),
    ([pa.nulls(1), pa.array([1]), CODES], "'a' is int64 in 1.parquet, but dictionary<.*> in 2.parquet: wri"),
    ([pa.array([b"z"]), CODES.cast(pa.string())], "'a' is binary in 0.parquet, but string in 1.parquet: write it"),
])  # fmt: skip
def test_parquet_files_with_different_types_and_orders_of_columns(tmp_path, arrays, wanted):
    for i, array in enumerate(arrays):
        columns = pa.table({"a": array, "b": [i]})
        pq.write_table(columns.select(["b", "a"] if i else ["a", "b"]), tmp_path / f"{i}.parquet")
    if isinstance(wanted, str):
        with pytest.raises(ValueError, match=wanted):
            read_all(tmp_path)
    else:
        found = read_all(tmp_path)
        assert found.schema.types == [wanted, pa.int64()]
        assert found.to_pydict() == {"a": [array[0].as_py() for array in arrays], "b": list(range(len(arrays)))}


def test_damaged_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": range(1000)}), path, compression="gzip", use_dictionary=False)
    content = path.read_bytes()
    path.write_bytes(content[:60] + bytes(50) + content[110:])
    with pytest.raises(ValueError, match=r"^cannot read .*t.parquet: "):
        read_all(path)


def test_pandas_metadata_do_not_change_the_schema(tmp_path):
    frame = table().to_pandas()
    frame[:25].to_parquet(tmp_path / "1.parquet")
    pq.write_table(pa.Table.from_pandas(frame[25:], preserve_index=False), tmp_path / "2.parquet")
    batches = open_source(tmp_path).batches(["a"])
    assert pd.concat([batch.to_pandas() for batch in batches])["a"].tolist() == list(range(50))


@pytest.mark.parametrize("of", ["parquet", "csv", "table"])
def test_selected_rows(tmp_path_factory, folder, of):
    frame = table().to_pandas()
    given = {"parquet": folder, "csv": write_table(frame, tmp_path_factory.mktemp("t") / "t.csv"), "table": table()}[of]
    source = open_source(given, options=ReadOptions(where="A > 5 AND b <> 't3'"))
    wanted = frame[(frame["a"] > 5) & (frame["b"] != "t3")]
    pd.testing.assert_frame_equal(read_all(source).to_pandas(), wanted.reset_index(drop=True), check_dtype=False)
    rows = [batch.num_rows for batch in source.batches(["a"], 3, 10)]
    assert (sum(rows), max(rows)) == (len(wanted) - 3, 10)
    assert source.location(0).rpartition(" ")[2] == str(int(wanted["a"].iloc[0]) + (2 if of == "csv" else 1))
    assert (source.n_rows, source.columns) == (len(wanted), ["a", "b", "c"])
    sample = [open_source(given, options=ReadOptions(where="a > 5", sample=9)) for _ in range(2)]
    assert read_all(sample[0]).equals(read_all(sample[1]))
    values = read_all(sample[0])["a"].to_pylist()
    assert (len(values), sorted(set(values)), min(values) > 5) == (9, values, True)
    assert read_all(open_source(given, options=ReadOptions(sample=99))).num_rows == 50
    prints = [open_source(given, options=ReadOptions(sample=n)).fingerprint() for n in (9, 9, 10)]
    assert prints[0] == prints[1]
    assert (prints[0] == prints[2]) == (of == "table")


def test_selected_rows_of_text_keep_the_columns_that_stay_text(written):
    source = open_source(written("a,b\n1,2\n3,4\n"), ["b"], ReadOptions(where="b > 2"))
    assert read_all(source).to_pylist() == [{"a": 3, "b": "4"}]


def test_notes_on_how_columns_are_read(tmp_path):
    source = write_column(
        tmp_path, ["1,5"] * 20 + ["?"], e=["1,5"] * 21, key=[str(2**64 + 1)] * 21, small=[str(2**53 + 1)] * 21
    )
    notes = stray_notes(source, source.columns)
    assert [note.partition(":")[0] for note in notes] == ["column 'd'", "columns 'd', 'e'", "column 'key'"]
    assert notes[1] == "columns 'd', 'e': numbers such as '1,5' are read as 1.5"
    assert stray_notes(open_source(table()), ["a"]) == []
