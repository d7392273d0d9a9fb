"""The base class of the tree and the forest: parameters, training rows, and fitted attributes."""

from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from aucforest._sklearn import Interval, RealNotInt, StrOptions
from aucforest.columns.categorical import decode_labels, repeated
from aucforest.columns.dates import PARTS, Dates
from aucforest.columns.expansion import n_added
from aucforest.estimators._exports import TreeExports
from aucforest.estimators._validation import check_weights
from aucforest.fitting.coding import Coding
from aucforest.fitting.in_memory import RowsInMemory
from aucforest.fitting.spec import FitSpec, check_signs
from aucforest.fitting.table import TrainingTable
from aucforest.fitting.target import Target, check_groups, code_classes, kept_rows
from aucforest.tree.binning import MAX_BINS
from aucforest.tree.criteria.table import CRITERIA


class _DateParts(StrOptions):
    """Constraint for "auto" or a list of parts of dates, such as "month"."""

    def is_satisfied_by(self, value: Any) -> bool:
        is_list = isinstance(value, list | tuple) and len(value) > 0 and all(part in PARTS for part in value)
        return is_list or super().is_satisfied_by(value)

    def __str__(self) -> str:
        return f"'auto', a list of {', '.join(map(repr, PARTS))}"


# Constraints for a positive integer, and for a fraction.
NUMBER, FRACTION = Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0.0, 1.0, closed="right")
TREE_CONSTRAINTS: dict[str, list[Any]] = {
    "criterion": [StrOptions(set(CRITERIA)), callable],
    "splitter": [StrOptions({"best", "random"})],
    "max_features": [NUMBER, FRACTION, StrOptions({"sqrt", "log2"}), None],
    "max_depth": [NUMBER, None],
    "min_samples_split": [Interval(Integral, 2, None, closed="left"), FRACTION],
    "min_samples_leaf": [NUMBER, Interval(RealNotInt, 0.0, 1.0, closed="neither")],
    "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
    "min_gain": [Interval(Real, 0.0, None, closed="left")],
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "monotonic_cst": ["array-like", dict, None],
    "max_bins": [Interval(Integral, 2, MAX_BINS, closed="both"), None],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "date_parts": [_DateParts({"auto"}), None],
    "random_state": ["random_state"],
}


class TreeBasedClassifier(TreeExports):
    """Base of the classifiers whose fitted state is a list of trees, `trees_`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = TREE_CONSTRAINTS

    def _params(self) -> dict[str, Any]:
        """Return the parameters by name, faster than `get_params`."""
        return {name: getattr(self, name) for name in self._parameter_constraints}

    def _validate_rows(self, X: Any, y: Any, sample_weight: Any, groups: Any = None, cost: Any = None) -> RowsInMemory:
        """Validate the arguments of `fit`, and return them as training rows."""
        sample_weight = check_weights(X, sample_weight)
        X, y = self._validate_X(X, reset=True, y=decode_labels(y), kept=kept_rows(sample_weight))
        groups = None if groups is None else check_groups(groups, len(X))
        target = Target(*code_classes(y), sample_weight, groups, cost)
        # Here, only dates are expanded, because the other features of columns are found later.
        dates = cast("Dates", self.expanded_)
        return RowsInMemory(X, getattr(self, "feature_names_in_", None), self.categories_, dates, target)

    def _code(self, table: TrainingTable, spec: FitSpec) -> Coding:
        """Encode the training data, and set the fitted attributes that describe classes and features."""
        coding = table.code(spec)
        check_signs(spec.params.signs, coding.categories)
        self.classes_, self.categories_, self.expanded_ = table.target.classes, coding.categories, coding.expanded
        self.target_rates_ = coding.rates
        self.n_features_in_ = table.n_features - n_added(coding.expanded)
        if table.names is not None:
            self.feature_names_in_ = np.array(table.names, dtype=object)
            for name in repeated(self.split_features_.tolist()):
                raise ValueError(f"X has a column {name!r}, which is also the name of another feature: rename it")
        return coding

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        return len(self.classes_)

    @property
    def n_outputs_(self) -> int:
        """The number of targets, always 1."""
        check_is_fitted(self, "trees_")
        return 1

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The importance of each column of X: the sum of `split_importances_` over the features computed from it."""
        check_is_fitted(self, "trees_")
        total = np.zeros(self.n_features_in_)
        np.add.at(total, self._columns_of_features, self.split_importances_)
        return total

    @property
    def split_importances_(self) -> NDArray[np.float64]:
        """The mean over trees of the proportion of each feature in the total gain of a tree, with the sum 1.

        This impurity-based importance favors features with many distinct values, even if they are noise.
        """
        check_is_fitted(self, "trees_")
        total = np.zeros(self.trees_[0].n_features)
        for tree in self.trees_:
            tree.add_importances(total)
        return total / total.sum() if total.sum() > 0 else total
