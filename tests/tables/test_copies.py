"""Pipes, other encodings and spreadsheets are copied before they are read, and the copies are removed."""

import gc
import gzip
import io
import os
import sys
from contextlib import nullcontext
from threading import Thread
from types import SimpleNamespace
from zipfile import ZipFile

import openpyxl
import pandas as pd
import pytest

from aucforest.tables.copies import STANDARD, Readable
from aucforest.tables.sources import open_source
from tests.cli.data import check_refusal, mixed, run
from tests.tables.text_tables import read_all


def test_copies_are_removed_with_their_object(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    readable = Readable(path, None)
    assert readable.path == readable.stamped == path
    path.write_text("a\n1\n", "utf-16")
    source = open_source(path)
    (copied,) = (readable.path for readable in source._readable)
    assert copied.exists()
    assert read_all(source).to_pydict() == {"a": [1]}
    del source
    gc.collect()
    assert not copied.parent.exists()


def open_pipe(path, content):
    os.mkfifo(path)
    writer = Thread(target=path.write_bytes, args=(content,), daemon=True)
    writer.start()
    source = open_source(path)
    writer.join()
    return source


@pytest.mark.parametrize(
    "content",
    [b"a,b\n1,x\n", gzip.compress(b"a,b\n1,x\n"), "a,b\n1,x\n".encode("utf-16")],
    ids=["plain", "gzip", "utf-16"],  # the content of gzip has a time, so it cannot be part of the id
)
def test_standard_input_and_pipes_can_be_read_again(tmp_path, monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    sources = [open_source(str(STANDARD))]
    if hasattr(os, "mkfifo"):
        sources.append(open_pipe(tmp_path / "pipe.csv", content))
    for source, name in zip(sources, ["standard input", "pipe.csv"]):
        for _ in range(2):
            assert read_all(source).to_pydict() == {"a": [1], "b": ["x"]}
        assert source.location(0) == f"{name}, line 2"


def write_sheets(path, **sheets):
    with pd.ExcelWriter(path) as writer:
        for name, rows in sheets.items():
            rows.to_excel(writer, index=False, sheet_name=name)
    return path


def test_a_spreadsheet_is_read_as_the_csv_of_its_first_sheet(tmp_path):
    dates = {"day": pd.date_range("2024-01-31", periods=250).astype("M8[s]"), "at": pd.Timestamp("2024-02-29 10:30")}
    rows = mixed(250, 1).round({"width": 6, "weight": 2}).assign(**dates)
    with pytest.warns(UserWarning, match="^t.xlsx has 2 sheets: the first, 'rows', is read$"):
        table = read_all(write_sheets(tmp_path / "t.xlsx", rows=rows, notes=rows[:3]))
    rows.assign(day=rows["day"].dt.strftime("%Y-%m-%d")).to_csv(tmp_path / "t.csv", index=False)
    assert table.equals(read_all(tmp_path / "t.csv"))


@pytest.mark.parametrize(("cell", "is_noted"), [
    ("<c r='C2'><f>1+1</f></c>", True), ("<c r='C2' s='4'><f>1+1</f><v> </v></c>", True),
    ("<c r='C2'><f t='shared' si='0'/><v/></c>", True), ("<c r='C2'><f t='shared' si='0'/><v>2</v></c>", False),
    ("<c r='C2' t='str'><f>TRIM(A1)</f><v></v></c>", False),
])  # fmt: skip
def test_formulas_without_results_are_noted(tmp_path, cell, is_noted):
    """openpyxl writes formulas without results. The result of a formula can be an empty text."""
    path = write_sheets(tmp_path / "t.xlsx", rows=pd.DataFrame({"a": [1.5], "b": [2]}))
    changed = tmp_path / "changed.xlsx"
    with ZipFile(path) as archive, ZipFile(changed, "w") as copy:
        contents = {name: archive.read(name) for name in archive.namelist()}
        sheet, end = "xl/worksheets/sheet1.xml", b"</row></sheetData>"
        contents[sheet] = contents[sheet].replace(end, cell.replace("'", '"').encode() + end)
        assert b"<f" in contents[sheet]
        for name, content in contents.items():
            copy.writestr(name, content)
    note = "changed.xlsx has formulas without stored results, which are read as missing: open it in a spreadsheet"
    with pytest.warns(UserWarning, match=note) if is_noted else nullcontext():
        open_source(changed, as_text=None)


def test_hidden_sheets_are_skipped(tmp_path):
    shown = pd.DataFrame({"a": [2], "b": ["u"]})
    path = write_sheets(tmp_path / "t.xlsx", rows=pd.DataFrame({"x": [1]}), shown=shown)
    book = openpyxl.load_workbook(path)
    book["rows"].sheet_state, book.active = "hidden", 1
    book.save(path)
    assert read_all(path).to_pydict() == {"a": [2], "b": ["u"]}
    if hasattr(os, "mkfifo"):
        assert read_all(open_pipe(tmp_path / "pipe.xlsx", path.read_bytes())).to_pydict() == {"a": [2], "b": ["u"]}


def test_spreadsheets_that_cannot_be_read(tmp_path, monkeypatch):
    path = tmp_path / "t.xlsx"

    def fit(rows):
        write_sheets(path, rows=rows)
        return run("fit", path, "--target", "label", "--out", tmp_path / "m")

    check_refusal(fit(mixed(10).assign(label=None)), "column 'label' has 10 missing labels, the first in t.xlsx, row 2")
    check_refusal(fit(mixed(0)[[]]), "cannot read t.xlsx: it is empty")
    path.write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"^cannot read t.xlsx: it is damaged or no workbook of Excel \("):
        open_source(path)
    with pd.ExcelWriter(path) as writer:
        mixed(10).to_excel(writer, index=False, startrow=1)
        sheet = next(iter(writer.sheets.values()))
        sheet.cell(1, 1, "Customers of May")
        sheet.merge_cells(start_row=1, start_column=1, end_row=1, end_column=7)
    nameless = r"^t.xlsx has 6 columns without a name \(columns 2, 3, 4, 5, 6 and more\): name or remove them, or"
    with pytest.raises(ValueError, match=nameless):
        open_source(path)
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    needs = "Error: reading t.xlsx needs python_calamine: pip install aucforest[xlsx]\n"
    assert fit(mixed(10)).stderr == needs
