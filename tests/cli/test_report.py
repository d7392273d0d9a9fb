"""`aucforest report`: the page of `aucforest.report.report`."""

import re

import pytest

import aucforest
from aucforest.report import report
from tests.cli.data import check_refusal, check_usage, mixed, run
from tests.cli.test_predict import frame_of


@pytest.mark.parametrize("with_training", [False, True], ids=["test rows", "training rows, too"])
def test_the_page_is_that_of_python(files, tmp_path, with_training):
    more = ["--train", files.train_csv] if with_training else []
    out = tmp_path / "page.html"
    result = run(
        "report", files.model_aucforest, files.test_csv, "--target", "label", "--out", out, "--title", "A", *more
    )
    assert result.exit_code == 0, result.output
    assert f"report: {out}" in result.stderr
    test, train = mixed(250, 1), mixed(300, 0)
    training = {"X_train": frame_of(train), "y_train": train["label"].to_numpy(str)} if with_training else {}
    model = aucforest.load(files.model_aucforest).set_params(n_jobs=-1)  # of the option --jobs
    expected = report(model, frame_of(test), test["label"].to_numpy(str), title="A", random_state=0, **training)
    page, wanted = (re.sub("<svg.*?</svg>", "", html, flags=re.DOTALL) for html in (out.read_text(), expected.html))
    assert page == wanted


def test_refusals(files, tmp_path):
    arguments = [files.model_aucforest, files.test_csv, "--target", "label", "--out"]
    check_usage(run("report", *arguments, tmp_path / "page.pdf"), "must end in .html, .htm, got page.pdf")
    check_refusal(run("report", *arguments, tmp_path / "no" / "page.html"), "does not exist")
    other = run("report", *arguments, tmp_path / "page.html", "--train", files.test_parquet)
    check_refusal(other, "row")
    assert not (tmp_path / "page.html").exists()
