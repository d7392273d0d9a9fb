import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucforest.metrics import group_rates
from aucforest.metrics.group_rates import rate_estimate
from tests.reference import metrics as reference

MANY = np.arange(300)


def by_group(rates):
    groups = dict.fromkeys(rate.group for rate in rates.rates)
    return {group: {rate.metric: rate for rate in rates.rates if rate.group == group} for group in groups}


@given(st.integers(0, 1000), st.booleans())
def test_rates_are_those_of_the_definition(seed, is_weighted):
    random = np.random.default_rng(seed)
    group = random.choice(np.array(["a", "b", None], dtype=object), 40)
    positive, selected, proba = random.random(40) < 0.3, random.random(40) < 0.4, random.random(40)
    sample_weight = random.choice([0.0, 1.0, 2.5], 40) if is_weighted else None
    words, weights = np.array(["no", "yes"]), sample_weight if is_weighted else np.ones(40)
    rates = group_rates(words[positive * 1], words[selected * 1], group, y_proba=proba, sample_weight=sample_weight)
    of_groups = by_group(rates)
    assert set(of_groups) == set(group[weights > 0])
    for name, found in of_groups.items():
        inside = (weights > 0) & (group == name)
        expected = reference.rates_of_group(*(part[inside] for part in (positive, selected, proba, weights)))
        assert tuple(found) == ("selection_rate", "recall", "fpr", "calibration")
        for rate, value in zip(found.values(), expected, strict=True):
            assert (rate.n_rows, rate.n_positive) == (inside.sum(), (inside & positive).sum())
            assert rate.value == pytest.approx(value, nan_ok=True)
            assert np.isnan(value) or rate.low <= rate.value <= rate.high
            difference = 0.0 if name == rates.reference else value - of_groups[rates.reference][rate.metric].value
            assert rate.difference == pytest.approx(difference, nan_ok=True, abs=1e-12)


def test_intervals_are_those_of_newcombe():
    """Newcombe's example: 56 of 70 against 48 of 80. Two differences, of selection rate and recall, need 95 % each."""
    selected, group = np.repeat([1, 0, 1, 0], [56, 14, 48, 32]), np.repeat(["first", "second"], [70, 80])
    rates = group_rates(np.ones(150), selected, group, level=0.9)
    rate = by_group(rates)["first"]["recall"]
    assert rate.difference == pytest.approx(0.2)
    assert (rate.difference_low, rate.difference_high) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert np.isnan(by_group(rates)["first"]["fpr"].difference)
    # Kish's effective number of rows is (3 + 1)^2 / (3^2 + 1^2).
    assert rate_estimate(np.array([True, False]), np.array([3.0, 1.0]))[:2] == pytest.approx((0.75, 10 / 16))
    assert (rate.low, rate.high) == pytest.approx((0.7109, 0.8669), abs=2e-3)  # Wilson's interval at 90 %


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.05, 0.05), (0.5, 9.5)])
def test_calibration_is_covered(alpha, beta):
    """The last two cases have almost certain classes, and samples without positives."""
    random = np.random.default_rng(2)
    proba = random.beta(alpha, beta, (400, 60))
    positive = random.random(proba.shape) < proba
    rates = [group_rates(y, y, np.zeros(60), y_proba=p).rates[-1] for y, p in zip(positive, proba)]
    assert 0.92 <= np.mean([rate.low <= 0.0 <= rate.high for rate in rates]) <= 0.98
    widths = np.mean([rate.high - rate.low for rate in rates])
    assert widths == pytest.approx(2 * 1.96 * np.sqrt(np.mean(proba * (1 - proba)) / 60), rel=0.2)


def test_overconfident_probabilities_have_wide_intervals():
    random = np.random.default_rng(0)
    proba, positive = random.integers(0, 2, 200).astype(float), random.random(200) < 0.5
    rate = group_rates(positive, positive, np.zeros(200), y_proba=proba).rates[-1]
    assert rate.high - rate.low > 2 * 1.96 * np.sqrt(0.25 / 200)


def test_groups_are_sorted_and_missing_ones_are_last():
    y, selected = np.tile([0, 1], 6), np.repeat([1, 0, 1], 4)
    numbers = np.array([3.0, 3.0, 1.0, np.nan] * 3)
    for group in (numbers, pd.Series(numbers), numbers.astype(object)):
        assert list(by_group(group_rates(y, selected, group))) == [1.0, 3.0, None]
    assert group_rates(y, selected, numbers).reference == 3.0
    assert group_rates(y, selected, numbers, reference=1).reference == 1.0
    assert group_rates(y, selected, numbers, reference=np.nan).reference is None
    days = np.array(["2024-01-02", "NaT", "2024-01-01"] * 4, dtype="M8[ns]")
    assert len(by_group(group_rates(y, selected, days))) == 3
    mixed = np.array([1, "a", None] * 4, dtype=object)
    assert list(by_group(group_rates(y, selected, mixed))) == [1, "a", None]


def test_verdict_and_table_of_group_rates():
    y, selected = np.repeat([1, 0, 1, 0], 100), np.repeat([1, 0, 0, 0], 100)
    rates = group_rates(y, selected, np.repeat(["first", "second"], 200))
    found = r"2 of the 3 differences from the group first exclude 0, jointly at 95 %: selection rate of second -0.500 ["
    assert rates.verdict().startswith(found)
    assert str(rates).splitlines()[2].startswith("second: 200 rows, 100 positive; selection rate 0.000 [0.000, 0.019];")
    assert rates.to_frame().shape == (6, 10)
    assert rates._repr_html_().startswith("<p>GroupRates(2 groups, reference first)</p><table")
    alike = group_rates(y, np.tile([0, 1], 200), np.tile([1, 1, 2, 2], 100))
    assert alike.verdict() == "None of the 3 differences from the group 1 excludes 0, jointly at 95 %."


@pytest.mark.parametrize(("change", "sentence"), [
    ({"group": ["a", "b"]}, "^group has 2 samples, but y_pred has 4$"),
    ({"y_true": MANY % 2, "y_pred": MANY % 2, "group": MANY}, "^group has 300 values, more than 100: .*qcut does$"),
    ({"y_true": [0, 1, 2, 0]}, "^y_true and y_pred must have two labels"),
    ({"y_true": []}, "^y_true has 0 samples, but y_pred has 4$"),
    ({"y_proba": [0.1, 0.2, 0.3, 1.4]}, r"^y_proba must be in \[0, 1\], but value 3 is 1.4$"),
    ({"reference": "c"}, "^reference must be a group, such as a, b, but is 'c'$"),
    ({"sample_weight": np.zeros(4)}, "^sample_weight is 0 for every sample$"),
    ({"level": 1.0}, r"^level must be in \(0, 1\)"),
])  # fmt: skip
def test_invalid_input(change, sentence):
    arguments = {"y_true": [0, 1, 1, 0], "y_pred": [0, 1, 0, 1], "group": ["a", "a", "b", "b"]} | change
    with pytest.raises(ValueError, match=sentence):
        group_rates(**arguments)
