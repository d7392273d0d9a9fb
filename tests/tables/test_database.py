"""--where and --sample select the right rows, and no expression, file name or column name can inject SQL."""

import gzip
import io
import os
import subprocess
import sys
from concurrent.futures import wait
from contextlib import contextmanager
from decimal import Decimal
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from aucforest.tables import database
from aucforest.tables.copies import STANDARD
from aucforest.tables.database import connect, connect_to, fetch, literal, rows_where
from aucforest.tables.read_options import ReadOptions
from aucforest.tables.sources import open_source
from tests.cli.data import check_refusal, check_usage, run, succeed
from tests.estimators.data import small_forest
from tests.tables.text_tables import read_all, write_table

SECRET = "hunter2"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a table and a secret file. After a test, no file in it has changed, and home is empty."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    home.mkdir()
    folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(folder)
    (folder / "canary.csv").write_text(f"n,t\n77,{SECRET}\n")
    (folder / "table.csv").write_text("n,t,label\n1,red,no\n2,blue,yes\n3,,no\n4,red,yes\n")
    before = contents(folder)
    yield folder
    after = contents(folder)
    assert {path: after.get(path) for path in before} == before
    assert list(home.iterdir()) == []


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def read(source, **options):
    return read_all(open_source(source, options=ReadOptions(**options))).to_pydict()


@contextmanager
def refused():
    """Expect a ValueError, of no subclass, whose message has one line and does not contain the secret."""
    with pytest.raises(ValueError) as caught:
        yield
    error = caught.value
    assert type(error) is ValueError
    assert len(str(error).splitlines()) == 1, str(error)
    assert SECRET not in str(error)
    assert len(str(error)) < 700


READS = "SELECT t FROM read_csv('canary.csv')"
REFUSED = [
    f"t IN ({READS})", "EXISTS (FROM 'canary.csv')", f"({READS}) > 'hunter'", f"array_length(ARRAY({READS})) > 0",
    "(SELECT content FROM read_text('canary.csv')) LIKE '%hunter%'", "read_text('canary.csv') IS NULL",
    f"(FROM query('{READS.replace(chr(39), chr(39) * 2)}')) IS NULL", "n IN (VALUES (1))",
    "json_execute_serialized_sql('{}') IS NULL", f"{{'a': ({READS})}} IS NULL",
    f"list_transform([n], lambda n: ({READS}))[1] IS NULL", f"list(n ORDER BY ({READS})) IS NULL",
    # other statements, and other parts of the statement
    "n > 1; COPY (SELECT 1) TO 'new.csv'", "true); COPY (SELECT 1) TO 'new.csv'; SELECT (true",
    "true); SELECT 1 FROM rows WHERE (true", "n > 1 -- \n; COPY (SELECT 1) TO 'new.csv' --",
    "true) /*", "true) --", f"true) UNION ALL ({READS}", f"(WITH c AS ({READS}) SELECT count(*) FROM c) > 0",
    "true) GROUP BY (n", f"true) HAVING (({READS}) IS NOT NULL", "true) QUALIFY (row_number() OVER () = 1",
    "true) LIMIT (1", "true) USING SAMPLE (1", f"sum(n) OVER w > 1) WINDOW w AS (ORDER BY ({READS})",
    # more than the values of one row
    "row_number() OVER () = 1", "sum(n) > 1", "unnest([n]) > 1", "COLUMNS(*) > 1", "#1 > 0", "n = ?", "n = DEFAULT",
    "rows IS NULL", "rowid = 1", '"number of the row\n" = 1', "n IN (SELECT z FROM hole)", "n IN hole",
    # functions
    "getenv('HOME') <> ''", "current_setting('home_directory') = ''", "random() < 0.5", "SLEEP_MS(100000) IS NULL",
    'main."Random"() < 0.5', "error('a\nb')", "'1.1.1.1'::INET IS NULL", "st_point(1, 2) IS NULL",
    # no conditions
    "t", "missing = 1", "", "n > 1;", "n >", "n > 1\0", "t = '\udcff'",
    "NOT " * 3000 + "n > 1", "n" + " + 1" * 20000 + " > 0",
    # too large
    "len(range(100000000000)) > 0", "len(repeat('x', 1000000000000)) > 0",
]  # fmt: skip


def shown(text):
    """Return the beginning of a text as the name of a case."""
    return repr(text[:20])


@pytest.mark.parametrize("expression", REFUSED, ids=shown)
def test_expressions_other_than_comparisons_within_a_row_are_refused(folder, expression):
    hole = pd.DataFrame({"z": [1]})  # without its settings, the engine would find this variable by its name
    with refused():
        open_source(folder / "table.csv", options=ReadOptions(where=expression))
    assert [path.name for path in sorted(folder.iterdir())] == ["canary.csv", "table.csv"]
    assert len(hole) == 1


@pytest.mark.parametrize("expression", [each for each in REFUSED if "canary" in each or "new." in each], ids=shown)
def test_the_engine_of_expressions_reaches_no_file_by_itself(folder, expression):
    """The settings of the connection prevent it even if the expression has not been checked."""
    batch = pa.record_batch({"n": [1], "t": ["a"]})
    with refused():
        rows_where(iter([batch]), batch.schema, expression)


HARMLESS = [
    ("t <> '''); COPY (SELECT 1) TO ''new.csv''; --'", [1, 2, 4]), ("t <> 'canary.csv'", [1, 2, 4]),
    ("n = 2 -- ; COPY (SELECT 1) TO 'new.csv'", [2]), (f"n = 2) WINDOW w AS (ORDER BY ({READS})", [2]),
    ("n = 2) OR (n = 3", [2, 3]), ("rows.n = 2", [2]), ("list_transform([n], lambda n: n + 1)[1] = 3", [2]),
    ("getvariable('HOME') IS NULL", [1, 2, 3, 4]), ("today() > DATE '2020-01-01' AND n = 1", [1]),
    (r"t <> e'\'; COPY' AND n = 1", [1]), ("regexp_matches(t, '^(a+)+$') OR n = 4", [4]), ("1 = 1", [1, 2, 3, 4]),
    ("(" * 100 + "n = 2" + ")" * 100, [2]), (" OR ".join(["n = 2"] * 500), [2]),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "expected"), HARMLESS)
def test_harmless_expressions_select_rows(folder, expression, expected):
    assert read(folder / "table.csv", where=expression)["n"] == expected
    assert [path.name for path in sorted(folder.iterdir())] == ["canary.csv", "table.csv"]


def test_options_that_select_no_rows(tables):
    arguments = "fit", tables["csv"], "--target", "t", "--out", "m"
    check_refusal(run(*arguments, "--where", "n > 'x'"), "where cannot be evaluated: ")
    check_refusal(run(*arguments, "--where", "n > 99"), "t.csv has no rows where n > 99")
    check_refusal(run(*arguments, "--where", "m > 9"), "no column 'm'")
    check_usage(run(*arguments, "--sample", "0"), "--sample")
    for expression in (REFUSED[0], "n >"):
        check_usage(run(*arguments, "--where", expression), "where ")
    for expression in ("", " -- n > 1"):
        check_usage(run(*arguments, "--where", expression), "where must be one SQL expression, such as ")
    with pytest.raises(ValueError, match="names of columns that have spaces or are words of SQL must be in double quo"):
        read(tables["csv"], where="at > 1")


FILE_NAMES = [
    "q'uote", "'); COPY (SELECT 1) TO 'new.csv'; --", "canary.csv', 'x", "*", "**", "?able", "[a-z]anary",
    "[!x]able", "a[b", "a]b", "{canary,table}", "{0}", "b\\c", "\\*", "\\[x]", "-x", "--where", "a\nb", "s3:",
    "file:x", "http:", "~", "$HOME", "%2e%2e", "k=v", 'a"b', "x.csv.gz", os.fsdecode(b"\xff"), "\u00fc\U0001f333",
]  # fmt: skip


@pytest.mark.parametrize(("name", "suffix"), list(zip(FILE_NAMES, cycle([".csv", ".jsonl", ".csv.gz"]))), ids=repr)
def test_names_of_files_are_no_sql_and_no_patterns(folder, name, suffix):
    """The names of folders are not patterns either, and a folder named k=v does not add a column."""
    written = '{"n": 1, "t": "x"}\n{"n": 2, "t": "y"}\n' if suffix == ".jsonl" else "n,t\n1,x\n2,y\n"
    path = Path(name) / f"{name}{suffix}"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(written.encode()) if suffix.endswith(".gz") else written.encode())
    for beside in ("b", "x", "xanary"):  # some names are patterns that match these files
        (path.parent / f"{beside}{suffix}").write_text(f"n,t\n77,{SECRET}\n")
    (path.parent / "\\[y].csv").write_text("")
    assert read(path) == {"n": [1, 2], "t": ["x", "y"]}
    assert read(path.absolute(), where="n = 2") == {"n": [2], "t": ["y"]}


def test_the_path_of_a_parquet_file_may_begin_with_a_tilde(folder):
    Path("~").mkdir()
    write_table(pd.DataFrame({"n": [1]}), Path("~/t.parquet").absolute())
    assert read("~/t.parquet") == {"n": [1]}


NAMES = [
    "it's", 'a "b" c', "a; DROP TABLE rows; --", "(SELECT t FROM 'canary.csv')",
    "'}); COPY (SELECT 1) TO 'new.csv'; --", "{0}", "{b}", "%s", "a\nb", "x" * 100_000, "select", "rows",
    "number of the row\n", "Number of the row\n", "rowid", "c1", "value", "name", "*", "a.b", "a\\b", " ", "=1+1",
    "filename",
]  # fmt: skip


@pytest.mark.parametrize(("name", "format_"), list(zip(NAMES, cycle(["csv", "jsonl", "parquet"]))), ids=shown)
def test_names_of_columns_are_no_sql(folder, name, format_):
    frame = pd.DataFrame({"c0": ["x", "y", "z"], name: [1, 2, 3]})
    write_table(frame, Path(f"new.{format_}"))
    quoted = name.replace('"', '""')
    assert read(f"new.{format_}") == {"c0": ["x", "y", "z"], name: [1, 2, 3]}
    assert read(f"new.{format_}", where=f"\"{quoted}\" >= 2 AND c0 < 'z'") == {"c0": ["y"], name: [2]}
    assert SECRET not in str(read(f"new.{format_}", where="c0 = 'x'"))


CELLS = [
    "'; DROP TABLE rows; --", "(SELECT t FROM 'canary.csv')", "=cmd|' /C calc'!A0", "@SUM(1)", "{0}", "canary.csv",
    "a,b;c\td", 'a "b", c', "a\nb", "\\'", "1); COPY (SELECT 1) TO 'new.csv'; --",
    "on Line: 7, Expected Number of Columns: 1 Found: 9", "x" * 200_000,
]  # fmt: skip


@pytest.mark.parametrize("cell", CELLS, ids=shown)
def test_cells_are_text(folder, cell):
    for name in ("new.csv", "new.jsonl"):
        write_table(pd.DataFrame({"t": [cell, "x", cell], "n": [1, 2, 3]}), Path(name))
        assert read(name) == {"t": [cell, "x", cell], "n": [1, 2, 3]}
    assert read(name, where=f"t = {literal(cell)} AND n > 1") == {"t": [cell], "n": [3]}


HOSTILE = [
    ("new.csv", "x" * 3_000_000 + ",n\n1,2\n"), ("new.jsonl", '{"a": 1}\n{"A": 2}\n{"b": 2}\n'),
    ("new.jsonl", '{"": 1}\n'), ("new.jsonl", '{"a": ' + "[" * 5000 + "]" * 5000 + "}\n"),
    ("new.jsonl", '{"a": "\\ud800"}\n'), ("new.csv", "a\0b,n\n1,2\n"), ("new.jsonl", '{"a\\u0000b": 1}\n'),
    ("new.parquet", "SELECT 1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content"), HOSTILE)
def test_broken_files_are_refused_in_a_sentence(folder, name, content):
    Path(name).write_text(content)
    with refused():
        read(name)


OPTIONS = [
    ({"separator": "'"}, "n't\n1'x\n", {"n": [1], "t": ["x"]}),
    ({"separator": "\\"}, "n\\t\n1\\x\n", {"n": [1], "t": ["x"]}),
    ({"separator": "}"}, "n}t\n1}x\n", {"n": [1], "t": ["x"]}),
    ({"separator": " "}, "n t\n1 NA\n", {"n": [1], "t": [None]}),
    ({"separator": "/"}, "n/t\n1/x\n", {"n": [1], "t": ["x"]}), ({"separator": "',quote='"}, "n\n1\n", None),
    ({"decimal": "'"}, "n\n1\n", None), ({"thousands": "'"}, "n\n1'000\n2'000\n", {"n": [1000.0, 2000.0]}),
    ({"thousands": "']"}, "n\n1\n", None),
    ({"date_format": "%Y'%m"}, "n\n2020'02\n", {"n": [pd.Timestamp("2020-02-01").date()]}),
    ({"date_format": "%Y']) FROM read_text('canary.csv') --"}, "n\n1\n", {"n": [1]}),
    ({"date_format": "{0}%Y"}, "n\n1\n", None), ({"date_format": "%Y\udcff"}, "n\n1\n", None),
    ({"encoding": "utf-8', quote='"}, "n\n1\n", None),
]  # fmt: skip


@pytest.mark.parametrize(("options", "content", "expected"), OPTIONS)
def test_options_are_no_sql(folder, options, content, expected):
    Path("new.csv").write_text(content)
    if expected is None:
        with refused():
            read("new.csv", **options)
    else:
        assert read("new.csv", **options) == expected


FORMATS = [
    ("day", {"date": "'])) IS NULL FROM read_text('canary.csv') --"}),
    ("day", {"date": "%d']); COPY (SELECT 1) TO 'new.csv'; --"}), ("day", {"date": "{0}"}), ("day", {"date": "%d\0"}),
    ("day", {"date": "%d" * 100}), ("weight", {"decimal": "]', '', 'g') --"}), ("weight", {"decimal": "^"}),
    ("weight", {"decimal": ",", "unit": "')OR(SELECT(1))--"}), ("weight", {"decimal": ",", "unit": "') OR ('"}),
    ("weight", {"decimal": ",", "unit": "{0}"}), ("weight", {"decimal": ",", "sql": "1"}),
    ("day'); --", {"date": "%d.%m.%Y"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "written"), FORMATS)
def test_formats_in_a_model_file_are_no_sql(folder, name, written):
    days, numbers = pd.date_range("2024-01-01", periods=60), np.arange(60.0)
    model = small_forest(3).fit(pd.DataFrame({"day": days, "weight": numbers}), numbers % 7 > 3)
    model.text_formats_ = {"day": {"date": "%d.%m.%Y"}, "weight": {"decimal": ",", "unit": "kg"}, name: written}
    model.save("new.model")
    Path("new.csv").write_text('day,weight\n31.12.2024,"1,5 kg"\n')
    result = run("predict", "new.model", "new.csv", "--out", "new-predictions.csv")
    if "'" in written.get("date", ""):  # a format that fits no date is not used
        assert result.exit_code == 0, result.output
        Path("new-predictions.csv").unlink()
    else:
        check_refusal(result, "")
        assert SECRET not in result.stderr
    assert [path.name for path in sorted(folder.iterdir())] == ["canary.csv", "new.csv", "new.model", "table.csv"]


def test_the_engine_that_reads_text_reaches_its_files_alone(folder):
    connection = connect_to([str(folder / "table.csv")], str(folder / "spilled"), 2)
    assert len(connection.execute(f"FROM read_csv('{folder}/table.csv')").fetchall()) == 4
    for sql in (
        f"FROM read_csv('{folder}/canary.csv')", f"FROM glob('{folder}/*')", "FROM read_text('/etc/hostname')",
        "COPY (SELECT 1) TO 'new.csv'", "ATTACH 'new.duckdb'", "INSTALL httpfs", "LOAD httpfs",
        "SET enable_external_access = true", "SET allowed_paths = ['canary.csv']", "FROM folder",
    ):  # fmt: skip
        with pytest.raises(duckdb.Error):
            connection.execute(sql)


def test_data_that_exceed_memory_are_written_to_a_temporary_folder(folder):
    Path("new.csv").write_text("t\n" + "".join(f"{row} {'x' * 40}\n" for row in range(1000)))
    table = open_source("new.csv")
    (temporary,) = table._connection.execute("SELECT current_setting('temp_directory')").fetchone()
    assert (Path(temporary).is_dir(), Path(temporary).is_relative_to(folder)) == (True, False)
    del table
    assert not Path(temporary).exists()


def test_no_connection_downloads_extensions(folder):
    for connection in (connect(), connect_to([], "", 0)):
        settings = connection.execute("SELECT name, value FROM duckdb_settings()").fetchall()
        found = {name: value for name, value in settings if name.endswith("known_extensions")}
        assert found == {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


def test_the_engine_prints_no_progress_in_interactive_sessions():
    """The engine takes a program that is passed by -c for an interactive session."""
    code = """
from aucforest.tables.database import connect, fetch
connection = connect()
connection.execute("SET progress_bar_time = 0")
fetch(connection, "SELECT count(DISTINCT i % 1000003) FROM range(10000000) t(i)", "counting")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_fetch_can_be_interrupted(monkeypatch):
    """`fetch` also raises the errors of the engine."""
    with pytest.raises(duckdb.ParserException):
        fetch(connect(), "SELEC", "x")
    calls = []

    def interrupted(futures, timeout):
        calls.append(timeout)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return wait(futures, timeout)

    monkeypatch.setattr(database, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch(connect(), "SELECT sum(a.range + b.range) FROM range(10000000) a, range(1000000) b", "x")
    assert set(calls) == {0.1}


# What is right.


def varied(n=120, seed=0):
    """Return rows with numbers, text and dates, all with gaps, and names of all kinds."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "id": range(n), "n": random.integers(0, 9, n).astype(float), "x": random.normal(size=n).round(3),
        "t": random.choice(["red", "Red", "blue", "it's"], n), "Upper Case": random.integers(0, 9, n),
        "day": pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
    })  # fmt: skip
    for name in ("n", "x", "t", "day"):
        frame.loc[random.random(n) < 0.1, name] = None
    return frame


EXPRESSIONS = [
    ("n > 3 AND t = 'red'", "n > 3 and t == 'red'"), ("n IS NULL OR x < 0", "n.isna() or x < 0"),
    ("n IS DISTINCT FROM 4", "n != 4"), ("t IN ('blue', 'it''s')", "t in ['blue', \"it's\"]"),
    ("lower(t) = 'red'", "t.str.lower() == 'red'"), ('"Upper Case" BETWEEN 2 AND 5', "2 <= `Upper Case` <= 5"),
    ('"upper case" = 2 OR N = 3', "`Upper Case` == 2 or n == 3"),
    ("N > 3 AND n < 6 AND T = 'red'", "3 < n < 6 and t == 'red'"),
    ("day >= '2024-03-01' AND day < DATE '2024-04-01'", "@date.dt.month == 3 and day.notna()"),
    ("month(day) = 2 OR day IS NULL", "@date.dt.month == 2 or day.isna()"), ("true", "id >= 0"),
]  # fmt: skip


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder, frame = tmp_path_factory.mktemp("tables"), varied()
    typed = frame.assign(day=pd.to_datetime(frame["day"]).dt.date)
    files = {"csv": frame, "jsonl": frame, "xlsx": frame, "parquet": typed}
    return {suffix: write_table(rows, folder / f"t.{suffix}") for suffix, rows in files.items()}


@pytest.mark.parametrize(
    ("sql", "expected", "name"), [(*pair, name) for pair, name in zip(EXPRESSIONS, cycle(["jsonl", "xlsx", STANDARD]))]
)
def test_rows_are_those_of_a_query_of_pandas(tables, monkeypatch, sql, expected, name):
    """Each expression is evaluated on a CSV, on Parquet, and on a third format."""
    dates = {"date": pd.to_datetime(varied()["day"])}
    rows = varied().query(expected, engine="python", local_dict=dates)["id"].tolist()
    assert len(rows) > 0
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(tables["csv"].read_bytes())))
    for source in (tables["csv"], tables["parquet"], tables.get(name, STANDARD)):
        assert read(source, where=sql)["id"] == rows, source


@pytest.mark.parametrize(
    ("zones", "row"), [(["Europe/Berlin"] * 2, 0), (["Europe/Berlin", "Asia/Tokyo"], 1), (["+02:00"] * 2, 1)]
)
def test_local_times_are_in_the_zone_that_columns_share_or_in_utc(zones, row):
    moments = pd.to_datetime(["2024-05-31 23:30", "2024-06-01 01:30"])
    times = {f"t{j}": pa.array(moments, pa.timestamp("us", zone)) for j, zone in enumerate(zones)}
    for where in ("hour(t0) = 1 AND t1 IS NOT NULL", "t0 >= '2024-06-01 01:00' AND t1 < '2024-06-01 02:00'"):
        assert read(pa.table({"id": [0, 1], **times}), where=where)["id"] == [row]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "decimal"])
def test_numbers_of_every_type_with_nan_as_missing(dtype):
    """The engine has neither float16 nor decimal256."""
    decimals = pa.array([Decimal(1), None, Decimal(3)], pa.decimal256(50, 2))
    numbers = decimals if dtype == "decimal" else pa.array(np.array([1, np.nan, 3], dtype))
    for where, rows in (("n IS NULL", [1]), ("n > 2", [2]), ("n <> 3", [0])):
        assert read(pa.table({"id": [0, 1, 2], "n": numbers}), where=where)["id"] == rows
    with pytest.raises(ValueError, match=r"^where cannot use the column 'n', which has type fixed_size_list<item: "):
        read(pa.table({"n": pa.FixedSizeListArray.from_arrays(pa.array([np.float16(1)]), 1)}), where="n IS NULL")


def test_names_that_differ_in_case_alone(folder):
    Path("new.csv").write_text("Aa,aA,b\n1,2,x\n2,1,y\n")
    assert read("new.csv", where="Aa = 1")["b"] == ["x"]
    assert read("new.csv", where="aA = 1")["b"] == ["y"]
    twins = "where has columns that differ in upper and lower case alone: 'Aa' and 'aA'"
    for where, sentence in (("Aa = 1 AND aA = 2", twins), ("AA = 1", "new.csv has no column 'AA'")):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            read("new.csv", where=where)


def test_samples_are_uniform():
    """Each tenth of the table has a tenth of the sampled rows, within four standard deviations."""
    table = pa.table({"id": np.arange(100_000)})
    counts = np.histogram(read(table, sample=10_000)["id"], bins=10, range=(0, 100_000))[0]
    assert counts.sum() == 10_000
    assert abs(counts - 1000).max() < 4 * np.sqrt(1000 * 0.9 * 0.9)
    assert counts.std() > 5  # a systematic sample of every tenth row would have 0


def test_lines_in_messages_are_those_of_the_file(folder):
    """Rows that are not selected, blank lines and values of several lines are counted."""
    rows = ['n,t,label,w', '1,"a', 'b",no,1', '', '2,x,yes,1', '3,y,no,', '4,z,yes,1', '5,z,no,-1']  # fmt: skip
    Path("new.csv").write_text("\n".join(rows) + "\n")
    for where, line in (("n > 1", 6), ("n >= 4", 8), ("n <> 3", 8)):
        result = run("fit", "new.csv", "--target", "label", "--out", "m", "--weight", "w", "--where", where)
        check_refusal(result, f"new.csv, line {line}: ")
    table = open_source("new.csv", options=ReadOptions(where="n IN (1, 2, 5)"))
    assert [table.location(row) for row in range(3)] == [f"new.csv, line {line}" for line in (2, 5, 8)]


@pytest.mark.parametrize("more", [(), ("--memory-limit", "1GB")], ids=["in_memory", "out_of_core"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_fit_of_selected_rows_is_that_of_a_file_with_these_alone(tmp_path, suffix, more):
    frame = varied(300).drop(columns=["id"])
    frame["label"] = np.where(frame["x"].fillna(0) + np.random.default_rng(1).normal(size=300) > 0, "yes", "no")
    whole = write_table(frame, tmp_path / f"whole{suffix}")
    part = write_table(frame.query("n > 2"), tmp_path / f"part{suffix}")
    for path, where, out in ((whole, ("--where", "n > 2"), "a"), (part, (), "b"), (whole, (), "c")):
        succeed("fit", path, "--target", "label", "--out", tmp_path / out, "--trees", 5, *where, *more)
    models = [(tmp_path / name).read_bytes() for name in "abc"]
    assert models[0] == models[1] != models[2]
