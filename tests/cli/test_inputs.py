"""What the commands read: folders of files, and CSV in other encodings."""

import json

import pytest

from tests.cli.data import check_refusal, check_usage, mixed, run


def write_folder(folder, rows, kind):
    """Write rows into three files of a folder, beside files of others."""
    folder.mkdir()
    (folder / "_SUCCESS").write_text("")
    for number, start in enumerate(range(0, len(rows), 100)):
        part = rows[start : start + 100]
        path = folder / f"part-{number}.{kind}"
        part.to_csv(path, index=False) if kind == "csv" else part.to_parquet(path)


@pytest.mark.parametrize(
    ("kind", "validate"), [("csv", []), ("parquet", ["--validate", 2])], ids=["out of core", "in memory"]
)
def test_a_folder_of_files_is_one_table(files, tmp_path, kind, validate):
    train, test = tmp_path / "train", tmp_path / "test"
    write_folder(train, mixed(300, 0), kind)
    write_folder(test, mixed(250, 1), kind)
    arguments = ["--target", "label", "--drop", "id,weight", "--threshold", "gmean", "--trees", 20, *validate]
    result = run("fit", train, *arguments, "--out", tmp_path / "m")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "m").read_bytes() == files.model_aucforest.read_bytes()
    assert "train, label" in result.stdout
    outputs = []
    for data in (test, files.test_csv):
        result = run("predict", tmp_path / "m", data, "--keep", "label", "--out", tmp_path / "p.csv")
        assert result.exit_code == 0, result.output
        result = run("evaluate", tmp_path / "m", data, "--target", "label", "--json", "-")
        outputs.append(((tmp_path / "p.csv").read_bytes(), json.loads(result.stdout)["metrics"]))
    assert outputs[0] == outputs[1]
    if validate and kind == "parquet":
        page = tmp_path / "page.html"
        result = run("report", tmp_path / "m", test, "--target", "label", "--by", "colour", "--out", page)
        assert result.exit_code == 0, result.output


def test_folders_that_are_no_tables(files, tmp_path):
    write_folder(tmp_path / "t", mixed(100, 0), "parquet")
    arguments = ["predict", files.model_aucforest]
    (tmp_path / "empty").mkdir()
    check_refusal(run(*arguments, tmp_path / "empty"), "empty has no .parquet or .csv or .tsv or .csv.gz or .tsv.gz")
    within = run(*arguments, tmp_path / "t", "--out", tmp_path / "t" / "p.parquet")
    check_refusal(within, "p.parquet would be in the folder that is read")
    mixed(100, 0).to_csv(tmp_path / "t" / "more.csv", index=False)
    check_refusal(run(*arguments, tmp_path / "t"), "t: some are CSV files and others are not")


def test_an_encoding_is_read_by_every_command(tmp_path, monkeypatch):
    """The results are those of the same table in UTF-8."""
    monkeypatch.chdir(tmp_path)
    rows = mixed(200, 0).replace({"colour": {"red": "grün"}}).drop(columns=["id", "weight"])
    commands = [
        "fit t.csv --target label --out m --trees 3 --reference r.csv --keep colour",
        "fit t.csv --target label --out m2 --trees 3 --memory-limit 1GB",
        "predict m t.csv --out p.csv --keep colour",
        "evaluate m t.csv --target label --json e.json",
        "export m --sklearn m.skops --check t.csv",
    ]
    others = [
        "report m t.csv --target label --by colour --out page.html",
        "compare t.csv --target label --criteria gini --folds 2 --repeats 1 --trees 2",
    ]
    written = {}
    for encoding in ("utf-8", "cp1252"):
        rows.to_csv("t.csv", index=False, encoding=encoding)
        options = [] if encoding == "utf-8" else ["--encoding", encoding]
        for command in commands + (others if options else []):
            result = run(*command.split(), *options)
            assert result.exit_code == 0, (command, result.output)
        written[encoding] = [(tmp_path / name).read_bytes() for name in ("m", "m2", "r.csv", "p.csv", "e.json")]
    assert written["utf-8"] == written["cp1252"]
    assert "grün".encode() in (tmp_path / "p.csv").read_bytes()
    rows.to_csv("u.csv", index=False)
    for command in (commands[1], commands[2]):
        result = run(*command.replace("t.csv", "u.csv").split(), "--encoding", "cp1252")
        assert result.exit_code == 0, result.output
        assert result.stderr.count("u.csv is valid UTF-8, but is read as cp1252: leave out --encoding") == 1
    refused = run("predict", "m", "t.csv")
    check_refusal(refused, "column 'colour' is not encoded in UTF-8: pass its encoding, such as --encoding cp1252")
    check_usage(run("predict", "m", "t.csv", "--encoding", "cp999"), "the encoding must be one that Python has")
