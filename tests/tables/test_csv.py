"""CSV files: values are read unchanged, messages have the line numbers of an editor, and bad files are refused."""

import gzip
import io
from contextlib import nullcontext

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.tables.kinds import MISSING, check_has_columns
from aucforest.tables.read_options import ReadOptions
from aucforest.tables.sources import open_source
from tests.tables.text_tables import read_all


def as_written(path, **options):
    """Return the columns of a CSV, all as text."""
    return read_all(open_source(path, None, ReadOptions(**options))).to_pydict()


def indices(path, n_rows, **options):
    """Return the numbers of the lines in which the first rows begin."""
    source = open_source(path, None, ReadOptions(**options))
    return [int(source.location(row).partition(", line ")[2]) for row in range(n_rows)]


def test_missing_value_markers_are_those_of_pandas_and_two_more(written):
    """pandas reads the same strings as missing, in columns of numbers and of strings."""
    words = [*MISSING, "none", "-", "0"]
    text = "a,b\n" + "".join(f"{word},x\n" for word in words) + '"NA",x\n"",x\n'
    content = read_all(written(text))
    missing = [value is None for value in content.column("a").to_pylist()]
    assert missing == pd.read_csv(io.StringIO(text), na_values=[r"\N", "NaT"])["a"].isna().tolist()
    assert missing == [*(word in MISSING for word in words), True, True]


@pytest.mark.parametrize("escape", ["\\", '"'])
def test_missing_values_of_mysql(written, escape):
    path = written(f'"a","n"\n"12.5","x {escape}"q{escape}""\n\\N,"z"\n3,\\N\n')
    assert read_all(path).to_pydict() == {"a": [12.5, None, 3.0], "n": ['x "q"', "z", None]}


CELLS = st.text(st.sampled_from("ab1,;\t|'\"\n\r ü#"), max_size=6)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=9), st.sampled_from([",", ";", "\t", "|"]))
def test_text_is_read_unchanged(tmp_path_factory, rows, separator):
    """The file is written by pandas. Values may contain separators, quotes and line breaks."""
    path, frame = tmp_path_factory.mktemp("csv") / "t.csv", pd.DataFrame(rows, columns=["a", "b"])
    frame.to_csv(path, index=False, sep=separator, quoting=1, lineterminator="\n")
    read = as_written(path, separator=separator)
    assert read == {name: [value or None for value in frame[name]] for name in frame}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("\ufeffa,b\r\n01,NA \r\n,\"x,\"\"y\"\"\"\r\n3, z\r\n", {"a": ["01", None, "3"], "b": ["NA ", 'x,"y"', " z"]}),
        ("a,b\n1,2\n\n3,", {"a": ["1", "3"], "b": ["2", None]}), ("a,b\r1,2\r3,4", {"a": ["1", "3"], "b": ["2", "4"]}),
        ('"a""q","b\nc"\n1,2\n', {'a"q': ["1"], "b\nc": ["2"]}),
        ("id,note\n1,\"say \\\"hi\\\"\"\n2,x\n", {"id": ["1", "2"], "note": ['say "hi"', "x"]}),
        ("id,note\n1,\"C:\\dir\\\"\n2,x\n", {"id": ["1", "2"], "note": ["C:\\dir\\", "x"]}),
        ("id,'no,te'\n1,'a,b'\n2,'it''s'\n", {"id": ["1", "2"], "no,te": ["a,b", "it's"]}),
        ('id,note\n1,"5\\""\n2,"x"\n', {"id": ["1", "2"], "note": ['5"', "x"]}),
        ('id,note\n1,"5\\"""\n2,"x"\n', {"id": ["1", "2"], "note": ['5\\"', "x"]}),
        ("a,b\n'tis nice,1\nthe dogs',2\n", {"a": ["'tis nice", "the dogs'"], "b": ["1", "2"]}),
        ('"a","b"\r"1","c:\\dir\\"\r"3","4"\r', {"a": ["1", "3"], "b": ["c:\\dir\\", "4"]}),
        ("a,b\n1,it's\n2,o'clock\n", {"a": ["1", "2"], "b": ["it's", "o'clock"]}),
        ('a,b\n1,5" nail\n2,z\n', {"a": ["1", "2"], "b": ['5" nail', "z"]}), ("a,A\n1,2\n", {"a": ["1"], "A": ["2"]}),
        ("a\nx\n\"\"\ny\n", {"a": ["x", None, "y"]}), ("a,b\n", {"a": [], "b": []}), ("a,b", {"a": [], "b": []}),
        ("PAR1,b\n,\n", {"PAR1": [None], "b": [None]}), ('"a","b"\n"1","2",\n', {"a": ["1"], "b": ["2"]}),
        ("a,b\n1,2,\n", {"a": ["1"], "b": ["2"]}),
        (f"a,b\n1,{'y' * 200_000}\n", {"a": ["1"], "b": ["y" * 200_000]}),
        ("a;b\n1,5;2,5\n", {"a": ["1,5"], "b": ["2,5"]}), ("a b\n1 2\n", {"a b": ["1 2"]}),
        ('"a" "b c"\n5 "x y"\n6 NA\n', {"a": ["5", "6"], "b c": ["x y", "NA"]}), ('"a b"\n"1 2"\n', {"a b": ["1 2"]}),
        ('"a" "b c"\n"1" 5 "x y"\n"2" 6 NA\n', {"": ["1", "2"], "a": ["5", "6"], "b c": ["x y", "NA"]}),
        ('"a","b"\n"r1",1,2\n"r2",,\n', {"": ["r1", "r2"], "a": ["1", None], "b": ["2", None]}),
        ("a,b\n1,2,\n3,4,\n", {"a": ["1", "3"], "b": ["2", "4"]}), ("sep=|\na;b|\n1|\n", {"a;b": ["1"], "": [None]}),
        ("a;b;;;\n1;2;;;\n;;; ;\n", {"a": ["1", None], "b": ["2", None], "": [None, None]}),
        ("|a|b|\n|1|2|\n", {"": [None], "a": ["1"], "b": ["2"]}), (",a,,\n0,1,,\n", {"": ["0"], "a": ["1"]}),
        ('"sep=;"\n"a";"b"\n"r1";1;2\n', {"": ["r1"], "a": ["1"], "b": ["2"]}), ("sep=\n1\n", {"sep=": ["1"]}),
        ('"a", "b,""c", d\n1, "x, y",z\n', {"a": ["1"], 'b,"c': ["x, y"], "d": ["z"]}),
        ('a, b\n1, z\n', {"a": ["1"], " b": [" z"]}), ('a,  "b"\n1,  "z"\n', {"a": ["1"], '  "b"': ['  "z"']}),
    ],
)  # fmt: skip
def test_dialects_of_csv(written, text, columns):
    assert as_written(written(text)) == columns


@pytest.mark.parametrize(("text", "lines"), [
    ('a,b\n1,2\n\n"3\n4",5\n\n6,7\n8,9\n', [2, 4, 7, 8]), ("a,b\r\n\r\n1,2\r\n3,4\r\n", [3, 4]),
    ("a\n\n1\n", [2, 3]),  # with one column, a blank line is a row
    ('sep=;\n\na;b;;\n1; "x\n\ny";;\n3;4;;\n', [4, 7]), ('"a\nb",c\n1,2\n', [3]),
    ("a,b\n1,'x,\ny'\n2,'z'\n3,'q,r'\n", [2, 4, 5]), (f"a,b\n1,{'x' * 200_000}\n2,y\n", [2, 3]),
])  # fmt: skip
def test_location_is_the_first_line_of_a_row(written, text, lines):
    path = written(text)
    assert len(next(iter(as_written(path).values()))) == len(lines)
    assert indices(path, len(lines)) == lines
    assert open_source(path).location(99).startswith("table.csv, row ")


@pytest.mark.parametrize(("ending", "separator", "given", "encoding"), [
    (".csv", ";", None, None), (".tsv", "\t", None, None), (".CSV.gz", "\t", r"\t", None),
    (".tsv.gz", "|", None, None), (".txt", ",", None, None), (".csv.gz", ",", None, None),
    (".csv.zst", ",", None, None), (".tsv.zst", "\t", None, None), (".csv", "~", "~", None),
    (".csv", ",", None, "cp1252"), (".csv.gz", ",", None, "cp1252"), (".csv", ",", None, "utf-16"),
    (".csv.gz", ",", None, "utf-16"), (".csv", ",", None, "UTF-8"),
])  # fmt: skip
def test_separators_encodings_and_compressed_files(written, ending, separator, given, encoding):
    frame = pd.DataFrame({"größe": range(300), "b": [f"{i},;\t|€\nü" for i in range(300)]})
    path = written(frame.to_csv(sep=separator, index=False).encode(encoding or "utf-8"), f"t{ending}")
    assert as_written(path, separator=given, encoding=encoding) == frame.astype(str).to_dict("list")
    assert indices(path, 2, separator=given, encoding=encoding) == [2, 4]


OPEN = "a quote is not closed, or text follows a closing quote: double the quotes within values"
IN_CP1252 = "pass its encoding, such as --encoding cp1252 (in Python, encoding='cp1252')"
NAMELESS = "columns without a name (columns {}): name or remove them, or remove the rows above the header"
FEWER = ": remove the line if it is not a row of the table"
ROW_NAMES = ": name the first column if it has names of rows"
RAGGED = "t.csv, line {}: the header has {} columns, but the row has {}"
PASSWORD = "has a password: save it as .xlsx without a password"
# The beginning of a file that zstd --long=31 compressed.
LONG, WINDOW = "(µ/ý\x04¨Å\x01\0B\x06\r\x0eÀµr", "Frame requires too much memory"
ZIP = "cannot read t.csv: it is a zip archive, as Excel files are: let its name end in .xlsx, or unpack it"
# The content of a file, its encoding, the option `encoding`, and the error message.
REFUSED = [
    ("", None, None, "cannot read t.csv: it is empty"), ("PK\3\4", None, None, ZIP),
    ("PAR1\x15", None, None, "cannot read t.csv: it is a Parquet file: pass it in a file whose name ends in .parquet"),
    ("\xd0\xcf\x11\xe0", "latin-1", None, f"cannot read t.csv: it is a file of an old version of Excel, or {PASSWORD}"),
    *((LONG, "latin-1", given, f"cannot read t.csv: ZSTD decompress failed: {WINDOW} for decoding; decompress it first")
      for given in (None, "cp1252")),
    ('a,b\r\n1,2\r\n"3,4', None, None, f"t.csv, line 3: {OPEN}"),
    ("\n\n", None, None, "t.csv has no header"), ("a,b\n1,2\n3\n", None, None, RAGGED.format(3, 2, 1) + FEWER),
    ("sep=;\na;b\n1;2\n  \n", None, None, RAGGED.format(4, 2, 1) + FEWER),
    ("sep=;\na;b;;\n1;2;;;x\n", None, None, RAGGED.format(3, 4, 5) + ROW_NAMES),
    ('"id","text"\n1,a, b\n2,bye\n', None, None, RAGGED.format(2, 2, 3) + ROW_NAMES),
    ('"a","b"\n' + '"r",1,2\n' * 30 + '"s",4\n', None, None, RAGGED.format(32, 3, 2) + FEWER),
    ("a,b\n" + "1,2\n" * 5000 + "3\n", None, None, RAGGED.format(5002, 2, 1) + FEWER),
    ("a,b\n" + "1,2\n" * 10 + '"3,4\n' + "1,2\n" * 1000, None, None, f"t.csv, line 12: {OPEN}"),
    ("a\n" + "x" * 3_000_000, None, None, "t.csv, line 2 is longer than 2 MiB: a quote may not be closed"),
    ("a,b\n1,2\r\n3,4\n", None, None, "t.csv, line 2 ends in another way than the header: let all lines end alike"),
    ("\r\na,b\n1,2\n3,4\n", None, None, "t.csv, line 1 ends in another way than the header: let all lines end alike"),
    ("a,b\r\n1,2\n3,4\n", None, None, "t.csv, line 2 ends in another way than the header: let all lines end alike"),
    ("a,b\n" + "1,1\n" * 5000 + "ü,1\n", "cp1252", None, f"t.csv, line 5002 is not encoded in UTF-8: {IN_CP1252}"),
    ("ü,b\n1,1\n", "cp1252", None, f"cannot read t.csv: the header is not encoded in UTF-8: {IN_CP1252}"),
    ("sep=,\nü,b\n", "cp1252", None, f"cannot read t.csv: the header is not encoded in UTF-8: {IN_CP1252}"),
    ("a,b\n\x81,1\n", "latin-1", "cp1252", "cannot read t.csv: it is not encoded in cp1252"),
    ("a,b\n1,1\n", None, "utf-16", "cannot read t.csv: it is not encoded in utf-16"),
    ("M,a,b,c,d,e,f,,,,,,\n1,,,,,,,2\n", None, None, f"t.csv has 6 {NAMELESS.format('8, 9, 10, 11, 12 and more')}"),
    (",,\n1,2,3\n", None, None, f"t.csv has 3 {NAMELESS.format('1, 2, 3')}"),
    (",,\n,,\n", None, None, f"t.csv has 3 {NAMELESS.format('1, 2, 3')}"),
    ("Report;;;;\na;b;;;\n", None, None, f"t.csv has 4 {NAMELESS.format('2, 3, 4, 5')}"),
    ("a,b,b,\n1\n", None, None, "t.csv has two columns named 'b': column names must be unique"),
    ('v,t\n1.5,"a\nb"\n' + "2,c\n" * 50 + "1,2,3\n", None, None, RAGGED.format(54, 2, 3)),
    ("a;b\n1;2\n3\n", None, None, f"t.csv.gz, line 3: the header has 2 columns, but the row has 1{FEWER}"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "encoding", "given", "sentence"), REFUSED)
def test_files_that_are_refused(written, content, encoding, given, sentence):
    path = written(content.encode(encoding or "utf-8"), "t.csv.gz" if "t.csv.gz" in sentence else "t.csv")
    with pytest.raises(ValueError) as caught:
        as_written(path, encoding=given)
    assert str(caught.value) == sentence


def test_a_compressed_file_that_is_cut_off(written):
    path = written(gzip.compress(b"a,b\n" + b"1,2\n" * 10**6)[:-99])
    with pytest.raises(ValueError, match=r"^cannot read table.csv"):
        as_written(path)


BREAKS = {"LF": "\n", "CR": "\r", "CRLF": "\r\n"}


@pytest.mark.parametrize("end", BREAKS)
@pytest.mark.parametrize("inside", BREAKS)
@pytest.mark.parametrize("header", ['id,"x{}kg",y', '"i{}d",x,y', 'id,x,"y{}z"'])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_breaks_in_the_header_differ_from_those_of_rows(written, end, inside, header, mark):
    header = header.format(BREAKS[inside])
    rows = "".join(f'{i},"v{i}",yes{BREAKS[end]}' for i in range(9))
    columns = as_written(written(f"{mark}\n{header}{BREAKS[end]}{rows}".replace("\n", "", 1)))
    assert list(columns) == header.replace('"', "").split(",")
    assert next(iter(columns.values())) == list("012345678")


def test_files_of_a_table_have_dialects_of_their_own(tmp_path, written):
    """Line ends, separators, quotes, escapes, blank lines and byte order marks differ; one has no rows, one nothing."""
    texts = [
        'a,b\n1,"x\ny"\n2,z\n', "a,b\r\n3,v\r\n4,w\r\n", "\n\na;b\n5;'p;q'\n", 'a,b\n6,"say \\"hi\\""\n7,x\n',
        "a,b\n8,u\n", "a,b\n", "a,b\n9,u\n", "",
    ]  # fmt: skip
    for i, text in enumerate(texts):
        written(text, f"{i}.csv")
    values = ["x\ny", "z", "v", "w", "p;q", 'say "hi"', "x", "u", "u"]
    assert as_written(tmp_path) == {"a": list("123456789"), "b": values}
    written("a,b\n10,u\n", "70.csv.gz")
    written('\ufeff"a","b"\n11,u\n', "8.csv.gz")
    source = open_source(tmp_path)
    assert [column[-1].as_py() for column in read_all(source).columns] == [11, "u"]
    where = ["0.csv, line 2", "0.csv, line 4", "1.csv, line 2", "1.csv, line 3", "2.csv, line 4", "3.csv, line 2"]
    assert [source.location(row) for row in range(6)] == where
    written("a,c\n1,2\n", "9.csv")
    with pytest.raises(ValueError, match=r"9.csv differs from 0.csv in column 'c'$"):
        open_source(tmp_path)
    for content, name in [("a,b,\n12,u,\n", "9.csv"), ("sep=;\na;b;;;\n13;u;;;\n", "90.csv")]:
        written(content, name)
    assert as_written([tmp_path / "9.csv", tmp_path / "90.csv"]) == {"a": ["12", "13"], "b": ["u"] * 2, "": [None] * 2}


LINES = [
    "a: 1, b: 2, c: 3, d: 4\na: 1, b: 2, c: 3, d: 4\na: 1, b: 2, c: 3", "Street {}, x\n12345 City, y\nLand, z",
    'he said ""yes, no, 1, {}""\n{},a,b,c\n', "x\n{},t,3,yes\n{},t,4,no",
]  # fmt: skip


@pytest.mark.parametrize("text", LINES)
def test_values_of_several_lines_in_a_large_file(written, text):
    """Threads cannot find where rows begin in the middle of the file, so one thread must read it without losses."""
    rows = "".join(f'{i},"{text.format(i, i)}",{i % 97}\n' for i in range(9 * 2**20 // (len(text) + 12)))
    path = written(f"id,t,v\n{rows}")
    assert as_written(path) == pd.read_csv(path, dtype=str).to_dict("list")
    path = written(f'id,t,v\n{rows}1,"2,3\n4,5,6\n', "open.csv")
    with pytest.raises(ValueError, match=r"^cannot read|^open.csv, line "):
        open_source(path).schema(["id", "t", "v"])


@pytest.mark.parametrize(
    "text",
    [
        "name,size\n" + 30 * 'tv,"12"\n' + 'a,5"\nb,"x\nc,1\n',
        'a,b\n1,x"y\n2,"open\n3,4\n', 'a,b\n1,2\n2, "open\n3,4\n',
        "a,b\n" + "1,2\n" * 2_500_000 + '1,5"\n2,"open\n' + "3,4\n" * 100,
    ],
    ids=["inches", "within", "space", "large"],
)  # fmt: skip
def test_no_row_is_lost_after_a_quote_that_is_not_closed(written, text):
    with pytest.raises(ValueError, match=rf"^table.csv, line [0-9]+: {OPEN}$"):
        open_source(written(text)).schema(["a" if text[0] == "a" else "name"])


def test_a_quote_within_a_value_beside_values_of_several_lines(written):
    path = written("a,b,c\n" + "".join(f'{i},"v\n","""\nw"\n' for i in range(500_000)) + '5,6",x\n')
    columns = as_written(path)
    assert [len(columns["a"]), columns["b"][0], columns["c"][-2], columns["b"][-1]] == [500_001, "v\n", '"\nw', '6"']


def test_files_without_quotes_are_not_read_in_one_thread(written, monkeypatch):
    monkeypatch.setattr("aucforest.tables.csv._has_open_quote", None)
    with pytest.raises(ValueError, match=r"^table.csv, line 3: the header has 2 columns, but the row has 1: remove"):
        open_source(written("a,b\n1,2\n3\n")).schema(["a"])


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.zst"])
def test_encodings_with_a_byte_order_mark_need_no_option(written, name, encoding):
    """Line ends within values are read unchanged."""
    mark = "\ufeff" if encoding.startswith("utf-16") else ""
    path = written(f'{mark}"ü\nx",b\r\n"x\r\ny",€\r\n'.encode(encoding), name)
    assert as_written(path) == {"ü\nx": ["x\r\ny"], "b": ["€"]}


@pytest.mark.parametrize(("text", "encoding", "given", "is_suspicious"), [
    ("ü\n", "utf-8", "cp1252", True), ("\ufffdü", "utf-8", "cp1252", True),
    ("u" * (2**20 - 3) + "ü", "utf-8", "gbk", True),
    ("ü\n", "utf-8", "utf_8_sig", False), ("ü\n", "cp1252", "cp1252", False),
    ("u\n", "utf-8", "cp1252", False), ("ü\n", "utf-16", "utf-16", False),
])  # fmt: skip
def test_utf8_that_is_read_as_another_encoding(written, text, encoding, given, is_suspicious):
    path = written(f"a\n{text}".encode(encoding), "t.csv")
    sentence = rf"^t.csv is valid UTF-8, but is read as {given}: leave out --encoding \(in Python, encoding\)$"
    with pytest.warns(UserWarning, match=sentence) if is_suspicious else nullcontext():
        columns = as_written(path, encoding=given)
    assert (columns["a"] == text.split()) != is_suspicious


ALONE = "was found: pass the separator of the values, or remove a title"


@pytest.mark.parametrize(("header", "separator", "hint"), [
    ("a,b,label", ";", f"; only the column 'a,b,label' {ALONE}"),
    ("#a;b", None, "; the first line begins with '#': remove it if it is a comment"),
    ("Report of May", None, f"; only the column 'Report of May' {ALONE}"),
    ("Report of May,", None, "; the first line is 'Report of May': remove it if it is a title"),
    ("a,b,lable", None, "; did you mean 'lable'?"),
    ("a,b,c", None, ""),
    ("a,b", None, "; rows have more values than the first line: remove the lines above the header"),
    ("1,b,2", None, "; the first line has values of rows, such as '1': add a header if it has none"),
    (
        '{"label":1,"a":1}',
        None,
        "; the first line looks like JSON: pass JSON lines in a file whose name ends in .jsonl",
    ),
])  # fmt: skip
def test_hints_on_the_header_if_a_column_is_missing(written, header, separator, hint):
    source = open_source(written(f"{header}\n1,2,3\n", "t.csv"), options=ReadOptions(separator))
    with pytest.raises(ValueError) as caught:
        check_has_columns(source, "label")
    assert str(caught.value) == f"t.csv has no column 'label'{hint}"
