"""The page in a browser: the explorer's numbers are those of scikit-learn, and there are no requests and errors."""

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
LABELS = Y[TEST]


@cache
def fitted():
    return small_forest(threshold="gmean").fit(X[TRAIN], Y[TRAIN])


def scores():
    return fitted().predict_proba(X[TEST])[:, 1]


def best(criterion, **options):
    return optimal_threshold(LABELS, scores(), criterion=criterion, **options)


def expected(threshold):
    return confusion_matrix(LABELS, scores() >= threshold).ravel().tolist()


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
    report(model, X[TEST], hostile[LABELS], title="A <b>title</b>", n_bootstrap=20, random_state=0).save(path)
    return path


def find(page, selector):
    return page.find_element("css selector", selector)


def metric(page, name):
    return float(find(page, f"[data-metric={name}]").get_attribute("data-value"))


def threshold(page):
    return float(find(page, "#threshold").get_attribute("data-value"))


def counts(page):
    return [metric(page, name) for name in ("tn", "fp", "fn", "tp")]


def jump(page, button, **fields):
    for name, content in fields.items():
        field = find(page, f"#{name.replace('_', '-')}")
        field.clear()
        field.send_keys(str(content))
    find(page, f"[data-best={button}]").send_keys(keys.ENTER)
    return threshold(page)


def move(page, index):
    cut = "const cut = document.getElementById('cut'); cut.value = arguments[0]; "
    page.execute_script(f"{cut}cut.dispatchEvent(new Event('input'))", index)


@pytest.fixture
def page(browser, path):
    browser.get_log("performance")
    browser.get(path.as_uri())
    return browser


def test_the_slider_starts_at_the_threshold_of_the_model(page):
    assert counts(page) == confusion_matrix(LABELS, fitted().predict(X[TEST])).ravel().tolist()
    last = int(find(page, "#cut").get_attribute("max"))
    seen = set()
    for index in [0, 1, last // 3, last // 2, last - 1, last]:
        move(page, index)
        seen.add(threshold(page))
        assert counts(page) == expected(threshold(page))
        called = scores() >= threshold(page)
        recall, specificity = (recall_score(LABELS, called, pos_label=label) for label in (1, 0))
        assert metric(page, "recall") == pytest.approx(recall)
        assert metric(page, "f1") == pytest.approx(f1_score(LABELS, called))
        assert metric(page, "gmean") == pytest.approx(np.sqrt(recall * specificity))
        shown = f"{precision_score(LABELS, called):.3f}" if called.any() else "–"
        assert find(page, "[data-metric=precision]").text == shown
        assert find(page, "#cut").get_attribute("aria-valuetext").endswith(f"recall {recall:.3f}, precision {shown}")
    assert len(seen) == 6


def test_the_button_for_the_least_cost_needs_costs(page):
    costs, button = page.find_elements("css selector", "tr.cost"), find(page, "[data-best=cost]")
    assert [row.is_displayed() for row in costs] == [False, False]
    assert not button.is_enabled()
    _, fp, _, tp = counts(page)
    assert metric(page, "alerts") == fp + tp
    assert metric(page, "per-1000") == pytest.approx(1000 * (fp + tp) / len(LABELS))
    for field, is_enabled in (("#cost-fp", False), ("#cost-fn", True)):
        find(page, field).send_keys("5")
        assert button.is_enabled() == is_enabled
    assert all(row.is_displayed() for row in costs)
    cuts = np.append(np.unique(scores()), np.inf)
    for false_positive, false_negative in [(1, 1), (1, 20), (20, 1)]:
        found = jump(page, "cost", cost_fp=false_positive, cost_fn=false_negative)
        costs = [false_positive * fp + false_negative * fn for _, fp, fn, _ in map(expected, cuts)]
        assert metric(page, "cost") == min(costs)
        assert costs[int(np.flatnonzero(cuts == found)[0])] == min(costs)
        assert metric(page, "cost-row") == pytest.approx(min(costs) / len(LABELS))


def test_buttons_find_the_thresholds_of_the_rules(page):
    note = find(page, "#unreached")
    jump(page, "precision")
    assert note.text == ""
    jump(page, "precision", aim_precision=2)
    highest = max(precision_score(LABELS, scores() >= cut) for cut in scores())
    assert metric(page, "precision") == pytest.approx(highest)
    assert note.text == f"No threshold reaches a precision of 2. This one has the highest, {highest:.3f}."
    move(page, 3)
    assert note.text == ""
    assert find(page, "#aim-recall").get_attribute("value") == "0.8"
    for criterion in ("gmean", "f1"):
        assert jump(page, criterion) == best(criterion)
    assert jump(page, "recall") == best({"recall": 0.8})
    for name, aim, given in (("recall", 0.95, 0.95), ("precision", 0.7, 0.7), ("alerts", 0.15, 150)):
        assert jump(page, name, **{f"aim_{name}": given}) == best({name: aim})
    assert not find(page, "[data-best=budget]").is_enabled()
    for fp, fn in ((1, 20), (20, 1)):
        assert jump(page, "budget", cost_fp=fp, cost_fn=fn) == best({"alerts": 0.15}, cost=[[0, fp], [fn, 0]])
    # of 400 rows a day, 100 alerts are a quarter
    assert not find(page, "tr.day").is_displayed()
    assert jump(page, "alerts", per_day=400, aim_alerts=100) == best({"alerts": 0.25})
    assert find(page, "#alerts-unit").text == "per day"
    assert metric(page, "per-day") == pytest.approx(400 * np.mean(scores() >= threshold(page)))
    find(page, "#aim-alerts").send_keys(keys.BACKSPACE * 3)
    assert not find(page, "[data-best=alerts]").is_enabled()


def test_the_dots_stand_on_the_curves(page):
    move(page, 40)
    recall = metric(page, "recall")
    rates = {"roc": (1 - metric(page, "specificity"), recall), "pr": (recall, metric(page, "precision"))}
    for name, expected_rates in rates.items():
        axes = find(page, f"svg[data-name={name}]").get_attribute("data-axes")
        left, right, bottom, top, *limits = map(float, axes.split())
        assert limits == [0, 1, 0, 1]
        dot = find(page, f"svg[data-name={name}] circle.cursor")
        x, y = (float(dot.get_attribute(axis)) for axis in ("cx", "cy"))
        assert ((x - left) / (right - left), (y - bottom) / (top - bottom)) == pytest.approx(expected_rates, abs=1e-3)


def test_nothing_is_fetched_and_other_scripts_are_blocked(page, path):
    move(page, 3)
    assert page.get_log("browser") == []
    messages = [entry["message"] for entry in page.get_log("performance")]
    (requested,) = (message for message in messages if "requestWillBeSent" in message)
    assert path.name in requested
    # A script that is added to the page does not run.
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
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
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
    """Print with another browser, because one that selenium controls sometimes prints a blank page."""
    pdf = tmp_path / "report.pdf"
    switches = [*SWITCHES, f"--user-data-dir={tmp_path / 'profile'}", f"--print-to-pdf={pdf}"]
    subprocess.run([CHROMIUM, *switches, path.as_uri()], check=True, capture_output=True, timeout=60)
    assert 3 <= pdf.read_bytes().count(b"/Type /Page\n") <= 12


def test_a_page_without_explorer_logs_no_error(browser, tmp_path):
    report(LogisticRegression().fit(X3, Y3), X3, Y3, **QUICK).save(tmp_path / "three.html")
    browser.get((tmp_path / "three.html").as_uri())
    assert browser.get_log("browser") == []
