"""Fitted models and their pages. Each page is made once, because this takes a second."""

import pytest

from aucforest import AUCStackingClassifier
from aucforest.report import report
from tests.estimators.data import small_forest
from tests.report.pages import FOREST_OPTIONS, QUICK, TEST, TRAIN, X3, Y3, X, Y


@pytest.fixture(scope="session")
def forest():
    return small_forest(30, threshold="gmean").fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="session")
def forest_page(forest):
    return report(forest, X[TEST], Y[TEST], **FOREST_OPTIONS)


@pytest.fixture(scope="session")
def forest_of_three():
    return small_forest(20).fit(X3[TRAIN], Y3[TRAIN])


@pytest.fixture(scope="session")
def page_of_three(forest_of_three):
    return report(forest_of_three, X3[TEST], Y3[TEST], X_train=X3[TRAIN], y_train=Y3[TRAIN], **QUICK)


@pytest.fixture(scope="session")
def stack():
    return AUCStackingClassifier(small_forest(30), threshold="gmean").fit(X[TRAIN], Y[TRAIN])
