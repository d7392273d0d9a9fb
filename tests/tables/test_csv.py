"""Tables from files: types that fit all rows, text that is as it is, lines that an editor counts."""

import gzip
import io
import sys
from contextlib import nullcontext
from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest

from aucforest.tables import csv
from aucforest.tables.csv import MISSING, CsvFiles, CsvTable
from aucforest.tables.csv_format import DEFAULT_FORMAT, CsvFormat
from aucforest.tables.kinds import find_column
from aucforest.tables.sources import open_source


@pytest.fixture
def written(tmp_path):
    """Write a CSV."""

    def write(text):
        path = tmp_path / "table.csv"
        path.write_bytes(text.encode())
        return path

    return write


def in_types(path, csv_format=DEFAULT_FORMAT):
    """Return a CSV as a table in types that fit all rows."""
    source = open_source(path, csv_format=csv_format)
    return pa.Table.from_batches(source.batches(source.columns), schema=source.schema(source.columns))


def in_strings(path, csv_format=DEFAULT_FORMAT):
    """Return a CSV that is read once, in batches of strings, as rows."""
    with path.open("rb") as handle:
        table = CsvTable(handle, path.name, path, csv_format)
        return [row for batch in table.batches(table.columns) for row in batch.to_pylist()]


def test_types_fit_all_rows(written, monkeypatch):
    """If a value in a late row is not a number, all values stay strings with their spelling."""
    monkeypatch.setattr(csv, "_BLOCK", 100)
    path = written("a,b,c\n" + "01,2,\n" * 500 + "other,2.5,x\n")
    content = in_types(path, CsvFormat(stray_text="text"))
    assert content.schema.types == [pa.string(), pa.float64(), pa.string()]
    assert set(content.column("a").to_pylist()) == {"01", "other"}
    assert content.column("c").null_count == 500


def test_missing_value_markers_are_those_of_pandas(written):
    """pandas reads each of them as missing, in numeric and string columns, and a few other strings not."""
    words = [*MISSING, "none", "-", "0"]
    frame = pd.read_csv(io.StringIO("a,b\n" + "".join(f"{word},x\n" for word in words)))
    content = in_types(written("a,b\n" + "".join(f"{word},x\n" for word in words)))
    missing = [value is None for value in content.column("a").to_pylist()]
    assert missing == frame["a"].isna().tolist() == [word in MISSING for word in words]


def test_batches_are_unchanged_strings(written):
    path = written('\ufeffa,b\r\n01,NA\r\n,"x,""y"""\r\n3, z\r\n')
    with path.open("rb") as handle:
        table = CsvTable(handle, "t.csv", path)
        assert table.columns == ["a", "b"]
        batches = list(table.batches(["b", "a"]))
        assert table.done(3) == 1.0
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert rows == [{"b": "NA", "a": "01"}, {"b": 'x,"y"', "a": ""}, {"b": " z", "a": "3"}]


def test_place_is_the_first_line_of_a_row(written):
    path = written('a,b\n1,2\n\n"3\n4",5\n\n6,7\n8,9\n')
    with path.open("rb") as handle:
        table = CsvTable(handle, "table.csv", path)
        assert [table.place(row) for row in range(4)] == [f"table.csv, line {line}" for line in (2, 4, 7, 8)]


def test_a_quote_that_is_not_closed(written, monkeypatch):
    monkeypatch.setattr(csv, "_BLOCK", 1000)
    path = written("a,b\n" + "1,2\n" * 10 + '"3,4\n' + "1,2\n" * 1000)
    with pytest.raises(ValueError, match="a quote may not be closed"):
        in_strings(path)


@pytest.mark.parametrize(
    ("ending", "separator"), [(".csv", ";"), (".tsv", None), (".CSV.gz", r"\t"), (".tsv.gz", "|"), (".csv.gz", None)]
)
def test_separators_and_compressed_files(tmp_path, monkeypatch, ending, separator):
    """Values can contain other separators, and both ways of reading return the same."""
    monkeypatch.setattr(csv, "_BLOCK", 200)
    given = separator or ("\t" if ending.startswith(".tsv") else ",")
    frame = pd.DataFrame({"a": range(300), "b": [f"{i},;\t|\n" for i in range(300)]})
    text = frame.to_csv(sep="\t" if given == r"\t" else given, index=False)
    path = tmp_path / f"t{ending}"
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    csv_format = CsvFormat(separator)
    assert in_types(path, csv_format).to_pylist() == frame.to_dict("records")
    assert in_strings(path, csv_format) == frame.astype(str).to_dict("records")
    assert [open_source(path, csv_format=csv_format).place(row) for row in (0, 1)] == [
        f"t{ending}, line {line}" for line in (2, 4)
    ]


def test_a_bad_row_of_a_compressed_file_is_named(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a;b\n1;2\n3\n"))
    with pytest.raises(ValueError, match=r"t\.csv\.gz, line 3: the header has 2 columns, but the row has 1"):
        in_strings(path, CsvFormat(";"))


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", gzip.compress(b"a,b\n" + b"1,2\n" * 10**6)[:-99]])
def test_a_compressed_file_that_is_broken(tmp_path, content):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"cannot read t.csv.gz"):
        in_strings(path)


@pytest.mark.parametrize(
    ("header", "name", "sentence"),
    [
        ("a;b;c;d;e;f", "t.csv", "t.csv: the header has no comma but 5 semicolons: pass --separator ';' "),
        (
            "a\tb",
            "t.csv",
            r"t.csv: the header has no comma but 1 tab: pass --separator '\t' (in Python, separator='\t')",
        ),
        ("a,b,c", "t.tsv", "t.tsv: the header has no tab but 2 commas: pass --separator ','"),
    ],
)
def test_another_separator_is_suggested(tmp_path, header, name, sentence):
    path = tmp_path / name
    path.write_text(f"{header}\n1\n")
    with pytest.raises(ValueError) as caught:
        open_source(path)
    assert sentence in str(caught.value)


def test_one_column_may_have_any_name(tmp_path):
    """No other separator is suggested if one is passed."""
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1\n")
    assert in_types(path, CsvFormat(",")).to_pylist() == [{"a;b": 1}]


# Values of different types to Arrow's reader, which change the type of a column if they occur in a late row.
WORDS = [
    "1", " 1", "+1", "0x1F", "1e5", "-inf", "nan", "true", "TRUE", " true", "0", "", "NA", "2024-02-29",
    "2024-02-29 10:00", "2024-02-29T10:00:00.123", "2024-02-29T10:00:00Z", "2024-02-29T10:00:00.5Z", "10:00",
    "9223372036854775808", "1_000", "\u00a01", "x", "00012",
]  # fmt: skip


def test_types_are_those_inferred_by_arrow(written, monkeypatch):
    """Columns have one value, each pair of values, or a value in the last row that changes the type."""
    columns = {f"{one}|{other}": [one] * 50 + [other] for one in WORDS for other in WORDS}
    path = written(pd.DataFrame(columns).to_csv(index=False))
    convert = pyarrow.csv.ConvertOptions(null_values=MISSING, strings_can_be_null=True)
    expected = pyarrow.csv.read_csv(path, convert_options=convert)
    monkeypatch.setattr(csv, "_BLOCK", 20_000)
    content = in_types(path, CsvFormat(stray_text="text"))
    assert content.schema.equals(expected.schema)
    assert content.equals(expected)
    assert len(set(expected.schema.types)) == 11


def test_files_can_be_read_several_times(tmp_path, monkeypatch):
    """From any row on, in batches of any size, as one table with line breaks in its values."""
    monkeypatch.setattr(csv, "_BLOCK", 200)
    rows = pd.DataFrame({"a": np.arange(90), "b": [f'say "{i}",\n{i % 7}' for i in range(90)], "c": np.arange(90) / 2})
    for name, part in [("1", rows[:20]), ("2", rows[20:20]), ("3", rows[20:])]:
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    for source in (open_source(tmp_path), open_source([str(tmp_path / f"{i}.csv") for i in (1, 2, 3)])):
        for first_row, size in ((0, 3), (0, 100), (19, 4), (20, 1), (89, 5), (90, 5)):
            batches = list(source.batches(["c", "b", "a"], first_row, size))
            assert all(0 < batch.num_rows <= size for batch in batches)
            read = pd.concat([rows[:0], *(batch.to_pandas() for batch in batches)])
            pd.testing.assert_frame_equal(
                read.reset_index(drop=True), rows[first_row:].reset_index(drop=True), check_dtype=False
            )
        assert [source.place(row) for row in (1, 20)] == ["1.csv, line 4", "3.csv, line 2"]
    assert open_source(tmp_path, as_text=["a"]).schema(["a", "c"]).types == [pa.string(), pa.float64()]
    assert open_source(tmp_path, as_text=None).schema(["a", "c"]).types == [pa.string()] * 2


def test_a_file_that_changes_between_readings(written):
    path = written("a,b\n1,2\n3,4\n")
    source = CsvFiles([path], "t")
    before = source.fingerprint()
    assert list(source.batches(["a"]))
    path.write_text("a,b\n1,2\n3,5.5\n")
    with pytest.raises(ValueError, match=r"table.csv changed while it was read"):
        list(source.batches(["a"]))
    assert before != open_source(path).fingerprint()


def test_invalid_files(tmp_path, written):
    path = written("a,b\n1,2\n")
    (tmp_path / "other.csv").write_text("a,c\n1,2\n")
    with pytest.raises(ValueError, match=r"table.csv differs from other.csv in column 'b'"):
        open_source(tmp_path)
    pd.DataFrame({"a": [1], "b": [2]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"2 files: some are CSV files and others are not"):
        open_source([path, tmp_path / "t.parquet"])
    with pytest.raises(ValueError, match="there is no file"):
        open_source(tmp_path / "none.csv")
    path.write_text('a,b\n1,2\n"3')
    with pytest.raises(ValueError, match="line 3: the header has 2 columns, but the row has 1"):
        open_source(path).schema(["a"])


def test_minutes_and_seconds_are_strings(tmp_path):
    """Arrow's reader, too, reads an invalid time of day, such as 45:61, as a string."""
    (tmp_path / "t.csv").write_text("length,y\n25:00,a\n45:30,b\n61:10,a\n")
    table = open_source(tmp_path / "t.csv")
    assert table.schema(["length"]).field("length").type == pa.string()
    assert [batch.column(0).to_pylist() for batch in table.batches(["length"])] == [["25:00", "45:30", "61:10"]]


def test_a_bad_value_is_reported_with_its_file(tmp_path):
    for i, value in enumerate(("bad", "1.0", "2.0")):
        (tmp_path / f"{i}.csv").write_text(f"x\n0.5\n{value}\n")
    table = open_source([tmp_path / f"{i}.csv" for i in range(3)], as_text=None)
    next(table.batches(["x"]))
    assert table.place(1) == "0.csv, line 3"


@pytest.mark.parametrize("rows", ["", "1,2\n"])
def test_arrow_has_let_go_of_the_content_after_the_last_batch(rows):
    """A thread of Arrow that still has the content of Python aborts the process if Python ends at that moment.

    Of 1000 readings, 18 without rows and 100 with one row left it with such a thread.
    """
    for _ in range(1000):
        content = io.BytesIO(f"a,b\n{rows}".encode())
        table = CsvTable(content, "t.csv")
        before = sys.getrefcount(content)
        assert sum(batch.num_rows for batch in table.batches(["a"])) == len(rows) // 4
        assert sys.getrefcount(content) == before


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "UTF-8"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_encodings(tmp_path, monkeypatch, encoding, ending):
    monkeypatch.setattr(csv, "_BLOCK", 1000)
    frame = pd.DataFrame({"größe": range(300), "b": [f"{i} €\nü" for i in range(300)]})
    text, path = frame.to_csv(index=False).encode(encoding), tmp_path / f"t{ending}"
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    assert in_types(path, CsvFormat(None, encoding)).to_pylist() == frame.to_dict("records")
    assert in_strings(path, CsvFormat(None, encoding)) == frame.astype(str).to_dict("records")
    assert open_source(path, csv_format=CsvFormat(None, encoding)).place(1) == f"t{ending}, line 4"


def test_days_in_another_format(written, monkeypatch):
    """They are days like those in ISO 8601, unless one of them has a time of day."""
    monkeypatch.setattr(csv, "_BLOCK", 100)
    numbers = [f"{i % 28 + 1:02d}" for i in range(60)]
    rows = "".join(f"{day}.02.2024,2024-02-{day},\n" for day in numbers)
    path = written(f"a,b,c\n2024-02-29,,01.02.2024\n{rows},,2024-02-29 12:00\n")
    whole = in_types(path, CsvFormat(date_format="%d.%m.%Y"))
    assert whole.schema.types == [pa.date32(), pa.date32(), pa.timestamp("s")]
    days = [date(2024, 2, int(day)) for day in numbers]
    assert whole["a"].to_pylist() == [date(2024, 2, 29), *days, None]
    assert whole["b"].to_pylist() == [None, *days, None]


@pytest.mark.parametrize(
    ("text", "written", "given", "is_suspicious"),
    [
        ("ü\n", "utf-8", "cp1252", True),
        ("ü\n", "utf-8", "latin-1", True),
        (7 * "bb\n" + "ü\n", "utf-8", "cp1252", True),  # the first block ends within a character
        ("ü\n", "utf-8", "utf-8", False),
        ("ü\n", "utf-8", "utf_8_sig", False),
        ("ü\n", "cp1252", "cp1252", False),
        ("u\n", "utf-8", "cp1252", False),
        ("鼠\n", "gbk", "gbk", False),
    ],
)
def test_utf8_that_is_read_as_another_encoding(tmp_path, monkeypatch, text, written, given, is_suspicious):
    monkeypatch.setattr(csv, "_BLOCK", 24)
    path = tmp_path / "t.csv"
    path.write_bytes(f"a\n{text}".encode(written))
    sentence = rf"^t.csv is valid UTF-8, but is read as {given}: leave out --encoding \(in Python, encoding\)$"
    expected = pytest.warns(UserWarning, match=sentence) if is_suspicious else nullcontext()
    with expected, path.open("rb") as handle:
        batches = list(CsvTable(handle, "t.csv", path, CsvFormat(None, given)).batches(["a"]))
    assert ([value for batch in batches for value in batch["a"].to_pylist()] == text.split()) != is_suspicious


IN_CP1252 = "pass its encoding, such as --encoding cp1252 (in Python, encoding='cp1252')"
IN_UTF_16 = "pass its encoding, such as --encoding utf-16 (in Python, encoding='utf-16')"


@pytest.mark.parametrize(
    ("text", "written", "given", "sentence"),
    [
        ("a,b\nü,1\n", "cp1252", None, f"t.csv, line 2: column 'a' is not encoded in UTF-8: {IN_CP1252}"),
        ("ü,b\n1,1\n", "cp1252", None, f"cannot read t.csv: the header is not encoded in UTF-8: {IN_CP1252}"),
        ("a,b\n1,1\n", "utf-16", None, f"cannot read t.csv: the header is not encoded in UTF-8: {IN_UTF_16}"),
        ("a,b\n\x81,1\n", "latin-1", "cp1252", "cannot read t.csv: it is not encoded in cp1252"),
        ("ü,b\n1,1\n", "cp1252", "ascii", "cannot read t.csv: it is not encoded in ascii"),
        ("a,b\n1,1\n", "utf-8", "utf-16", "cannot read t.csv: it is not encoded in utf-16"),
    ],
)
def test_another_encoding_is_suggested(tmp_path, text, written, given, sentence):
    path, csv_format = tmp_path / "t.csv", CsvFormat(None, given)
    path.write_bytes(text.encode(written))
    for read in (in_strings, in_types):
        with pytest.raises(ValueError) as caught:
            read(path, csv_format)
        assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("header", "separator", "hint"),
    [
        (
            "a,b,label",
            ";",
            "; the header has no semicolon but 2 commas: pass --separator ',' (in Python, separator=',')",
        ),
        ("a,b,label", "~", "; the header has no '~' but 2 commas: pass --separator ',' (in Python, separator=',')"),
        (
            "#a;label",
            None,
            "; the first line begins with '#': remove it if it is a comment; the header has no comma but 1 semicolon:"
            " pass --separator ';' (in Python, separator=';')",
        ),
        ("# made, by me", None, "; the first line begins with '#': remove it if it is a comment"),
        ("Report of May", None, "; the first line is 'Report of May': remove it if it is a title"),
        ("Report of May,", None, "; the first line is 'Report of May': remove it if it is a title"),
        ("a,b,lable", None, "; did you mean 'lable'?"),
        ("a,b", None, ""),
    ],
)
def test_what_is_wrong_with_a_header_without_the_column(tmp_path, header, separator, hint):
    path, csv_format = tmp_path / "t.csv", CsvFormat(separator)
    path.write_text(f"{header}\na,b,label\n1,2,3\n")
    with pytest.raises(ValueError) as caught:
        find_column(open_source(path, csv_format=csv_format), "label")
    assert str(caught.value) == f"t.csv has no column 'label'{hint}"


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        (
            "Customers of May,,,,,,",
            "6 columns without a name (columns 2, 3, 4, 5, 6 and more): the first row holds only 'Customers of May' and"
            " is probably no header: remove the rows above the header",
        ),
        (
            ",,",
            "3 columns without a name (columns 1, 2, 3): the first row is empty and is probably no header: remove the"
            " rows above the header",
        ),
        ("a,b,label,,", "2 columns without a name (columns 4, 5): name or remove them"),
        ("a,b,b,", "two columns named 'b': column names must be unique"),
    ],
)
def test_headers_that_are_none_or_incomplete(written, header, sentence):
    with pytest.raises(ValueError) as caught:
        open_source(written(f"{header}\na,b,label\n1,2,3\n"))
    assert str(caught.value) == f"table.csv has {sentence}"


@pytest.mark.parametrize("at", [0, 250, 499], ids=["first", "middle", "last"])
def test_stray_text_is_counted_over_all_blocks(written, monkeypatch, at):
    """Wherever it is, and also where whole blocks are numbers; a column with more text, and dates, stay text."""
    monkeypatch.setattr(csv, "_BLOCK", 200)
    rows = [[f"{row % 40}.5", f"{row}", "x" if row % 5 == 0 else "7", f"2024-01-0{1 + row % 9}"] for row in range(500)]
    rows[at][0], rows[at][1], rows[at][3] = "unknown", "NA", "soon"
    path = written("a,b,c,d\n" + "".join(",".join(row) + "\n" for row in rows))
    source = open_source(path)
    assert source.schema(["a", "b", "c", "d"]).types == [pa.float64(), pa.int64(), pa.string(), pa.string()]
    assert {name: str(stray) for name, stray in source.stray.items()} == {
        "a": "1 of 500 values is no number ('unknown')"
    }
    content = pa.Table.from_batches(source.batches(["d", "a"]))
    assert content.column("a").to_pylist() == [None if row == at else row % 40 + 0.5 for row in range(500)]
    assert content.column("d")[at].as_py() == "soon"
    assert pa.Table.from_batches(source.batches(["a"], first_row=240, rows=7)).column("a")[10].as_py() == (
        None if at == 250 else 10.5
    )
    kept = open_source(path, csv_format=CsvFormat(stray_text="text"))
    assert (kept.schema(["a"]).types, kept.stray) == ([pa.string()], {})
    assert kept.fingerprint() != source.fingerprint()
