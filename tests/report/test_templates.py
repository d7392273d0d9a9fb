"""The page in a real browser: the slider's figures are scikit-learn's, nothing is fetched, nothing complains."""

import shutil
import subprocess
from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, f1_score, precision_score, recall_score

from aucforest.metrics import optimal_threshold
from aucforest.report import report
from tests.estimators.data import small_forest
from tests.report.pages import QUICK, TEST, TRAIN, X3, Y3, X, Y

webdriver = pytest.importorskip("selenium.webdriver")
keys = pytest.importorskip("selenium.webdriver.common.keys").Keys

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver"),
]

SWITCHES = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--window-size=1200,900",
]  # fmt: skip


@cache
def fitted():
    return small_forest(threshold="gmean").fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in [*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    hostile = np.array(['"><img src=x onerror=alert(1)>', "</script><script>document.title='pwned'</script>"])
    model = small_forest(threshold="gmean").fit(X[TRAIN], hostile[Y[TRAIN]])
    page = report(model, X[TEST], hostile[Y[TEST]], title="A <b>title</b>", n_bootstrap=20, random_state=0)
    page.save(path)
    return path


@pytest.fixture
def page(browser, path):
    browser.get_log("performance")
    browser.get(path.as_uri())
    return browser


def value(page, selector):
    return float(page.find_element("css selector", selector).get_attribute("data-value"))


def threshold(page):
    return value(page, "#threshold")


def counts(page):
    return [value(page, f"[data-metric={name}]") for name in ("tn", "fp", "fn", "tp")]


def expected(threshold):
    return confusion_matrix(Y[TEST], fitted().predict_proba(X[TEST])[:, 1] >= threshold).ravel().tolist()


def jump(page, button, **fields):
    """Fill in fields, press a button, and return the threshold."""
    for name, content in fields.items():
        field = page.find_element("id", name.replace("_", "-"))
        field.clear()
        field.send_keys(str(content))
    page.find_element("css selector", f"[data-best={button}]").send_keys(keys.ENTER)
    return threshold(page)


def move(page, index):
    page.execute_script(
        "const cut = document.getElementById('cut'); cut.value = arguments[0]; cut.dispatchEvent(new Event('input'))",
        index,
    )


def test_the_slider_begins_at_the_threshold_of_the_model_and_shows_what_scikit_learn_counts(page):
    assert counts(page) == confusion_matrix(Y[TEST], fitted().predict(X[TEST])).ravel().tolist()
    last = int(page.find_element("id", "cut").get_attribute("max"))
    seen = set()
    for index in [0, 1, last // 3, last // 2, last - 1, last]:
        move(page, index)
        seen.add(threshold(page))
        assert counts(page) == expected(threshold(page))
        y, called = Y[TEST], fitted().predict_proba(X[TEST])[:, 1] >= threshold(page)
        recall = recall_score(y, called)
        assert value(page, "[data-metric=recall]") == pytest.approx(recall)
        assert value(page, "[data-metric=f1]") == pytest.approx(f1_score(y, called))
        specificity = recall_score(y, called, pos_label=0)
        assert value(page, "[data-metric=gmean]") == pytest.approx(np.sqrt(recall * specificity))
        shown = page.find_element("css selector", "[data-metric=precision]").text
        assert shown == (f"{precision_score(y, called):.3f}" if called.any() else "–")
    assert len(seen) == 6


def test_the_keyboard_moves_the_slider(page):
    cut = page.find_element("id", "cut")
    before = int(cut.get_attribute("value"))
    for key, after in [(keys.ARROW_RIGHT, before + 1), (keys.ARROW_LEFT, before), (keys.HOME, 0)]:
        cut.send_keys(key)
        assert int(cut.get_attribute("value")) == after
        assert counts(page) == expected(threshold(page))
    text = cut.get_attribute("aria-valuetext")
    assert text.endswith("recall 1.000, precision " + page.find_element("css selector", "[data-metric=precision]").text)


def test_without_costs_there_are_alerts_and_no_cost(page):
    costs = page.find_elements("css selector", "tr.cost")
    button = page.find_element("css selector", "[data-best=cost]")
    assert len(costs) == 2
    assert not any(row.is_displayed() for row in costs)
    assert not button.is_enabled()
    _, fp, _, tp = counts(page)
    assert value(page, "[data-metric=alerts]") == fp + tp
    assert value(page, "[data-metric=per-1000]") == pytest.approx(1000 * (fp + tp) / len(Y[TEST]))
    page.find_element("id", "cost-fp").send_keys("1")
    assert not button.is_enabled()
    page.find_element("id", "cost-fn").send_keys("5")
    assert button.is_enabled()
    assert all(row.is_displayed() for row in costs)


def test_costs_change_the_least_cost(page):
    y, scores = Y[TEST], fitted().predict_proba(X[TEST])[:, 1]
    cuts = np.append(np.unique(scores), np.inf)
    for false_positive, false_negative in [(1, 1), (1, 20), (20, 1)]:
        found = jump(page, "cost", cost_fp=false_positive, cost_fn=false_negative)
        costs = [false_positive * fp + false_negative * fn for _, fp, fn, _ in map(expected, cuts)]
        assert value(page, "[data-metric=cost]") == min(costs)
        assert costs[int(np.flatnonzero(cuts == found)[0])] == min(costs)
        assert value(page, "[data-metric=cost-row]") == pytest.approx(min(costs) / len(y))


def test_aims_are_those_of_the_rules(page):
    y, scores = Y[TEST], fitted().predict_proba(X[TEST])[:, 1]
    for criterion in ("gmean", "f1"):
        assert jump(page, criterion) == optimal_threshold(y, scores, criterion=criterion)
    assert page.find_element("id", "aim-recall").get_attribute("value") == "0.8"
    assert jump(page, "recall") == optimal_threshold(y, scores, criterion={"recall": 0.8})
    assert jump(page, "recall", aim_recall=0.95) == optimal_threshold(y, scores, criterion={"recall": 0.95})
    assert jump(page, "precision", aim_precision=0.7) == optimal_threshold(y, scores, criterion={"precision": 0.7})
    assert jump(page, "alerts", aim_alerts=150) == optimal_threshold(y, scores, criterion={"alerts": 0.15})
    assert not page.find_element("css selector", "[data-best=budget]").is_enabled()
    for cost in ([[0, 1], [20, 0]], [[0, 20], [1, 0]]):
        found = jump(page, "budget", cost_fp=cost[0][1], cost_fn=cost[1][0])
        assert found == optimal_threshold(y, scores, criterion={"alerts": 0.15}, cost=cost)
    # of 400 rows a day, 100 alerts are a quarter
    assert not page.find_element("css selector", "tr.day").is_displayed()
    assert jump(page, "alerts", per_day=400, aim_alerts=100) == optimal_threshold(y, scores, criterion={"alerts": 0.25})
    assert page.find_element("id", "alerts-unit").text == "per day"
    assert value(page, "[data-metric=per-day]") == pytest.approx(400 * np.mean(scores >= threshold(page)))
    page.find_element("id", "aim-alerts").send_keys(keys.BACKSPACE * 3)
    assert not page.find_element("css selector", "[data-best=alerts]").is_enabled()


def test_a_precision_that_is_not_reached_is_the_highest_and_said(page):
    note = page.find_element("id", "unreached")
    jump(page, "precision")
    assert note.text == ""
    jump(page, "precision", aim_precision=2)
    y, scores = Y[TEST], fitted().predict_proba(X[TEST])[:, 1]
    highest = max(precision_score(y, scores >= cut) for cut in scores)
    assert value(page, "[data-metric=precision]") == pytest.approx(highest)
    assert note.text == f"No threshold reaches a precision of 2. This one has the highest, {highest:.3f}."
    move(page, 3)
    assert note.text == ""


def test_the_dots_stand_on_the_curves(page):
    """Where the dot of the ROC curve is in the picture, the rates are those of the table."""
    move(page, 40)
    for name, keys_of_axes in [("roc", (None, "recall")), ("pr", ("recall", "precision"))]:
        svg = page.find_element("css selector", f"svg[data-name={name}]")
        left, right, bottom, top, *limits = map(float, svg.get_attribute("data-axes").split())
        assert limits == [0, 1, 0, 1]
        dot = svg.find_element("css selector", "circle.cursor")
        index = [float(dot.get_attribute(axis)) for axis in ("cx", "cy")]
        found = (index[0] - left) / (right - left), (index[1] - bottom) / (top - bottom)
        x, y = (None if key is None else value(page, f"[data-metric={key}]") for key in keys_of_axes)
        assert found == pytest.approx((1 - value(page, "[data-metric=specificity]") if x is None else x, y), abs=1e-3)


def test_nothing_is_fetched_and_nothing_complains(page, path):
    move(page, 3)
    messages = [entry["message"] for entry in page.get_log("browser")]
    assert messages == []
    requested = [entry["message"] for entry in page.get_log("performance") if "requestWillBeSent" in entry["message"]]
    assert len(requested) == 1
    assert path.name in requested[0]


def test_a_program_of_a_stranger_does_not_run(page):
    assert page.title == "A <b>title</b>"
    assert page.find_elements("css selector", "img") == []
    page.execute_script(
        "const alien = document.createElement('script'); alien.textContent = \"document.title = 'pwned'\";"
        "document.body.append(alien)"
    )
    assert page.title != "pwned"
    assert "Content Security Policy" in page.get_log("browser")[0]["message"]


@pytest.mark.parametrize("width", [380, 1200])
def test_the_page_fits_its_window(page, width):
    page.set_window_size(max(width, 500), 900)
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    page.execute_script("window.dispatchEvent(new Event('resize'))")
    hints = page.execute_script(
        "return Array.from(document.querySelectorAll('.scroll'), (box) => [box.scrollWidth > box.clientWidth,"
        " getComputedStyle(box.querySelector('caption'), '::after').content.includes('Scroll sideways')])"
    )
    assert all(is_wide == is_said for is_wide, is_said in hints)
    assert any(is_wide for is_wide, _ in hints) == (width == 380)
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_page_prints(path, tmp_path):
    """Printed by a browser of its own, which waits for the page; one that is driven now and then prints a blank."""
    pdf = tmp_path / "report.pdf"
    switches = [*SWITCHES, f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={pdf}"]
    subprocess.run([CHROMIUM, *switches, path.as_uri()], check=True, capture_output=True, timeout=60)
    assert 3 <= pdf.read_bytes().count(b"/Type /Page\n") <= 12


def test_a_page_without_explorer_does_not_complain(browser, tmp_path):
    report(LogisticRegression().fit(X3, Y3), X3, Y3, **QUICK).save(tmp_path / "three.html")
    browser.get((tmp_path / "three.html").as_uri())
    assert browser.get_log("browser") == []
