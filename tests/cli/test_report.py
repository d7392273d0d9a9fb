"""`aucforest report`: the page of `aucforest.report.report`."""

import json
import re

import numpy as np
import pytest

import aucforest
from aucforest.report import report
from tests.cli.data import check_refusal, check_usage, frame_of, mixed, run, succeed
from tests.report.pages import Page, figures


@pytest.mark.slow
def test_the_page_is_that_of_python(files, tmp_path):
    out = tmp_path / "page.html"
    options = ["--target", "label", "--out", out, "--title", "A", "--train", files.train_csv]
    result = succeed("report", files.model_aucforest, files.test_csv, *options)
    assert f"report: {out}" in result.stderr
    test, train = mixed(250, 1), mixed(300, 0)
    training = {"X_train": frame_of(train), "y_train": train["label"].to_numpy(str)}
    model = aucforest.load(files.model_aucforest).set_params(n_jobs=-1)  # of the option --jobs
    facts = {"Target": "label, positive: yes", "Data": "test.csv", "Training data": "train.csv"}
    options = {"title": "A", "facts": facts, "random_state": 0, **training}
    expected = report(model, frame_of(test), test["label"].to_numpy(str), **options)
    page, wanted = (re.sub("<svg.*?</svg>", "", html, flags=re.DOTALL) for html in (out.read_text(), expected.html))
    assert page == wanted


def test_a_page_on_a_stack(files, stack, tmp_path):
    out, arguments = tmp_path / "page.html", ("--target", "label", "--train", files.train_csv)
    succeed("report", stack.path, files.test_csv, *arguments, "--out", out)
    page = out.read_text()
    for text in ("What each member adds", "AUCForestClassifier(n_estimators=30, random_state=0)"):
        assert text in page


def test_wrong_outputs_and_other_training_rows_are_refused(files, tmp_path):
    arguments = [files.model_aucforest, files.test_csv, "--target", "label", "--out"]
    check_usage(run("report", *arguments, tmp_path / "page.pdf"), "must end in .html, .htm, got page.pdf")
    check_refusal(run("report", *arguments, tmp_path / "no" / "page.html"), "does not exist")
    other = run("report", *arguments, tmp_path / "page.html", "--train", files.test_parquet)
    check_refusal(other, "row")
    assert not (tmp_path / "page.html").exists()


@pytest.fixture(scope="module")
def other_model(files, tmp_path_factory):
    """Return another model with the same name of file, to which `count` is a category and which lacks `flag`."""
    path = tmp_path_factory.mktemp("other") / "model.aucforest"
    options = ["--drop", "id,weight,flag", "--categorical", "count", "--trees", 5, "--out", path]
    succeed("fit", files.train_csv, "--target", "label", *options)
    return path


def test_several_models_read_their_columns_in_their_types(files, other_model, tmp_path):
    """Each has the ROC AUC of `evaluate`, whatever types it reads the columns in."""
    models, page = [other_model, files.model_aucforest], tmp_path / "page.html"
    arguments = ["--target", "label", "--weight", "weight"]
    training = ["--train", files.train_csv, "--intended-use", "A <test>."]
    succeed("report", *models, "--data", files.test_csv, *arguments, *training, "--out", page)
    shown = Page(page.read_text())
    for name, model in zip(("model", "model 2"), models):
        run("evaluate", model, files.test_csv, *arguments, "--json", tmp_path / "figures.json")
        (auc,) = (
            row["value"] for row in json.loads((tmp_path / "figures.json").read_text())["metrics"]
            if row["metric"] == "roc_auc"
        )  # fmt: skip
        assert figures(shown, "Metrics by model")[name][0] == f"{auc:.3f}"
    assert sorted(row[0] for row in shown.tables["The 4 columns"][1:]) == ["colour", "count", "flag", "width"]
    assert {"Drift", "Data"} < set(shown.headings)
    assert "Intended use: A &lt;test&gt;." in page.read_text()


def test_the_table_of_several_models_is_the_last_argument_or_an_option(files, tmp_path):
    copy = tmp_path / "copy.aucforest"
    copy.write_bytes(files.model_aucforest.read_bytes())
    models, options = [files.model_aucforest, copy], ["--target", "label", "--out", tmp_path / "page.html"]
    succeed("report", *models, files.test_csv, *options)
    html = (tmp_path / "page.html").read_text()
    assert "<h1>model, copy: yes against no</h1>" in html
    assert "copy does not differ significantly from model: ROC AUC" in html
    for arguments in (models, models[:1]):
        check_usage(run("report", *arguments, *options), "is missing: name the table behind")
    check_usage(run("report", *models, "-", *options), "standard input and pipes cannot be read twice")
    check_usage(run("report", *models, files.test_csv, *options, "--by", "flag"), "is for a report on one model")
    check_refusal(run("report", *models, "--data", tmp_path / "no.csv", *options), "there is no file")
    other_labels = ["--target", "weight", "--positive", ">=1", "--drop", "id,label", "--trees", 2]
    succeed("fit", files.train_csv, *other_labels, "--out", copy)
    check_refusal(run("report", *models, files.test_csv, *options), "models on one page must have the same classes")


@pytest.mark.slow
def test_subgroups_of_columns_that_the_model_does_not_know(files, tmp_path):
    test = mixed(250, 1)
    test["region"] = np.where(np.arange(250) < 100, "north", "south")
    test.to_csv(tmp_path / "test.csv", index=False, sep=";")
    arguments = ["report", files.model_aucforest, tmp_path / "test.csv", "--target", "label"]
    arguments += ["--out", tmp_path / "p.html", "--separator", ";"]
    succeed(*arguments, "--by", "region,colour", "--intended-use", "Sorts <labels>.")
    page = (tmp_path / "p.html").read_text()
    assert re.findall("<caption>Performance by (.*?)</caption>", page) == ["region", "colour"]
    rows = re.findall(r'<th scope="row">(north|south)</th>\s*<td class="r">(\d+)', page)
    assert rows == [("south", "150"), ("north", "100")]
    assert "Intended use: Sorts &lt;labels&gt;." in page
    check_refusal(run(*arguments, "--by", "regoin"), "has no column 'regoin'; did you mean 'region'?")
    by_input = run(*arguments[:2], "-", *arguments[3:], "--by", "region", input=(tmp_path / "test.csv").read_bytes())
    check_usage(by_input, "is for files: standard input and pipes cannot be read twice")


def test_large_integers_are_counted_right(tmp_path):
    """float64 holds four of these identifiers."""
    table = mixed(250, 1)[["width", "label"]].assign(order=2**62 + 16 * np.arange(250))
    table.to_csv(tmp_path / "t.csv", index=False)
    succeed("fit", tmp_path / "t.csv", "--target", "label", "--trees", 5, "--out", tmp_path / "m.aucforest")
    page = tmp_path / "page.html"
    succeed("report", tmp_path / "m.aucforest", tmp_path / "t.csv", "--target", "label", "--out", page)
    described = (
        r'<th scope="row">order</th>\s*<td class="l">number</td>\s*<td class="r">0.0 %</td>\s*<td class="r">250<'
    )
    assert re.search(described, page.read_text())
    assert "Column &#39;order&#39;: every value is distinct, as in an identifier." in page.read_text()
