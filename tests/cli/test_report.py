"""`aucforest report`: pages on one and on several models, and errors."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import aucforest
from aucforest.report import report
from tests.cli.data import check_refusal, check_usage, frame_of, mixed, read_json, run, succeed
from tests.report.pages import Page, figures

REPORT = "report model.aucforest test.csv --target label --out page.html"


def page():
    return Path("page.html").read_text()


@pytest.mark.slow
def test_the_page_is_that_of_python(files):
    assert "report: page.html" in succeed(f"{REPORT} --title A --train train.csv").stderr
    test, train = mixed(250, 1), mixed(300, 0)
    model = aucforest.load("model.aucforest").set_params(n_jobs=-1)  # of the option --jobs
    expected = report(
        model, frame_of(test), test["label"].to_numpy(str), title="A", random_state=0,
        facts={"Target": "label, positive: yes", "Data": "test.csv", "Training data": "train.csv"},
        X_train=frame_of(train), y_train=train["label"].to_numpy(str),
    )  # fmt: skip
    found, wanted = (re.sub("<svg.*?</svg>", "", html, flags=re.DOTALL) for html in (page(), expected.html))
    assert found == wanted


def test_a_page_on_a_stack(stack):
    succeed(f"{REPORT} --train train.csv".replace("model", "stack"))
    for text in ("What each member adds", "AUCForestClassifier(n_estimators=30, random_state=0)"):
        assert text in page()


def test_wrong_outputs_and_other_training_rows_are_refused(files):
    check_usage(run(f"{REPORT} --out page.pdf"), "must end in .html, .htm, got page.pdf")
    check_refusal(run(f"{REPORT} --out no/page.html"), "does not exist")
    check_refusal(run(f"{REPORT} --train test.parquet"), "row")
    assert not Path("page.html").exists()


def test_several_models_read_their_columns_in_their_types(files):
    Path("other").mkdir()
    options = "--drop id,weight,flag --categorical count --trees 5 --out other/model.aucforest"
    succeed(f"fit train.csv --target label {options}")
    models, options = ["other/model.aucforest", "model.aucforest"], "test.csv --target label --weight weight"
    report = f"report {' '.join(models)} --data {options} --train train.csv --out page.html --intended-use"
    succeed(report, "A <test>.")
    shown = Page(page())
    for name, model in zip(("model", "model 2"), models):
        auc = read_json(f"evaluate {model} {options}")["metrics"][0]["value"]
        assert figures(shown, "Metrics by model")[name][0] == f"{auc:.3f}"
    assert sorted(row[0] for row in shown.tables["The 4 columns"][1:]) == ["colour", "count", "flag", "width"]
    assert {"Drift", "Data"} < set(shown.headings)
    assert "<dt>Intended use</dt><dd>A &lt;test&gt;.</dd>" in page()


def test_the_table_of_several_models_is_the_last_argument_or_an_option(files):
    shutil.copy("model.aucforest", "copy.aucforest")
    one = "report --target label --out page.html model.aucforest"
    two = f"{one} copy.aucforest"
    succeed(f"{two} test.csv")
    assert "<h1>model, copy: yes against no</h1>" in page()
    assert "copy does not differ significantly from model: ROC AUC" in page()
    for command, sentence in (
        (two, "is missing: give the table after"),
        (one, "is missing: give the table after"),
        (f"{two} -", "standard input and pipes cannot be read twice"),
        (f"{two} test.csv --by flag", "is for a report on one model"),
    ):
        check_usage(run(command), sentence)
    check_refusal(run(f"{two} --data no.csv"), "there is no file")
    succeed("fit train.csv --target weight --positive >=1 --drop id,label --trees 2 --out copy.aucforest")
    check_refusal(run(f"{two} test.csv"), "models on one page must have the same classes")


@pytest.mark.slow
def test_subgroups_of_columns_that_the_model_does_not_know(files):
    test = mixed(250, 1)
    test["region"] = np.where(np.arange(250) < 100, "north", "south")
    test.to_csv("test.csv", index=False, sep=";")
    report = f"{REPORT} --separator ;"
    succeed(f"{report} --by region,colour --intended-use", "Sorts <labels>.")
    assert re.findall("<caption>Performance by (.*?)</caption>", page()) == ["region", "colour"]
    rows = re.findall(r'<th scope="row">(north|south)</th>\s*<td class="r">(\d+)', page())
    assert rows == [("south", "150"), ("north", "100")]
    assert "Intended use: Sorts &lt;labels&gt;." in page()
    check_refusal(run(f"{report} --by regoin"), "has no column 'regoin'; did you mean 'region'?")
    of_input = f"{report} --by region".replace("test.csv", "-")
    sentence = "is for files: standard input and pipes cannot be read twice"
    check_usage(run(of_input, input=Path("test.csv").read_bytes()), sentence)
