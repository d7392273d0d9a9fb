"""What model files hold of a stack: its members, each with its own arrays and metadata, and their combination."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.estimators._additive import AdditiveClassifier
from aucforest.estimators._forest_files import restore_decision, store_decision
from aucforest.estimators._model_files import Part, require, restore_model, store_model
from aucforest.persistence.model_file import Arrays, StoredModel
from aucforest.tables.columns import check_same_categories
from aucforest.tables.dates import n_added
from aucforest.tables.target_rates import are_same_rates
from aucforest.tree.tree import SHARED_CODE

_FOREST = "AUCForestClassifier"
# Sums of products of these with scores and columns are finite.
_GREATEST = 1e300
# The fitted arrays of an additive model that files call by the same names; weights and intercepts are "coef_" and
# "intercept_" there.
_ARRAYS = ("centre_", "scale_", "knot_places_", "knots_", "missing_", "code_features_", "codes_", "penalties_")
# The one that files of before do not have, nor models that come from them.
_MEANS = "column_means_"


def _store_stack(stack: Any) -> tuple[Arrays, dict[str, Any]]:
    arrays = {**store_decision(stack), "coef_": stack.weights_, "intercept_": stack.intercepts_}
    metadata: dict[str, Any] = {}
    for name, member in stack.members_.items():
        store = _store_additive if name == "linear" else store_model
        more, metadata[name] = store(member)
        arrays |= {f"{name}/{array}": values for array, values in more.items()}
    return arrays, metadata


def _store_additive(model: Any) -> tuple[Arrays, dict[str, Any]]:
    if not isinstance(model, AdditiveClassifier):
        raise TypeError(f'linear: a {type(model).__name__} cannot be saved: use linear="auto", or pickle the stack')
    arrays = {name: getattr(model, name) for name in (*_ARRAYS, _MEANS) if hasattr(model, name)}
    return arrays | {"coef_": model.column_weights_, "intercept_": model.intercepts_}, {"is_sparse": model.is_sparse_}


def _restore_stack(stack: Any, stored: StoredModel) -> None:
    stack.members_ = {}
    if "old" in stored:
        stack.members_["old"] = _restore_member(stack, stored.take_model("old"), _FOREST, "AUCStackingClassifier")
    forest = stack.members_["forest"] = _restore_member(stack, stored.take_model("forest"), _FOREST)
    if "residual" in stored:
        residual = stack.members_["residual"] = _restore_member(stack, stored.take_model("residual"), _FOREST)
        check_same_categories(forest.categories_, residual.categories_)
        require(forest.dates_ == residual.dates_, "the forests of the stack have different dates")
        are_same = are_same_rates(forest.target_rates_, residual.target_rates_)
        require(are_same, "the forests of the stack have different target rates")
    if "linear" in stored:
        stack.members_["linear"] = _restore_additive(forest, stored.take_model("linear"))
    for name in ("categories_", "dates_", "target_rates_"):
        setattr(stack, name, getattr(forest, name))
    weights = stack.weights_ = stored.take_array("coef_", "d", (len(stack.members_),))
    require(np.all(weights >= 0.0) and weights.sum() < _GREATEST, "coef_ is not finite or negative")
    stack.intercepts_ = stored.take_array("intercept_", "d", (len(stack.classes_),))
    require(np.abs(stack.intercepts_).sum() < _GREATEST, "intercept_ is not finite")
    restore_decision(stack, stored)


def _restore_member(stack: Any, stored: StoredModel, *kinds: str) -> Any:
    """Return a model of one of some classes, for the same data as the stack."""
    member = restore_model(stored, *kinds)
    for name in ("classes_", "n_features_in_", "feature_names_in_"):
        of_stack, of_member = (np.asarray(getattr(model, name, None)) for model in (stack, member))
        require(np.array_equal(of_stack, of_member), f"{name} of the stack and of its forests differ")
    return member


def _restore_additive(forest: Any, stored: StoredModel) -> AdditiveClassifier:
    """Return an additive model of the features of the forest."""
    n_features, n_classes = forest.n_features_in_ + n_added(forest.dates_), len(forest.classes_)
    model = AdditiveClassifier(tuple(forest.categories_))
    model.is_sparse_, model.classes_ = stored.take("is_sparse", bool), np.arange(n_classes)
    model.numbers_ = model.find_numbers(n_features)
    model.centre_, model.scale_ = (stored.take_array(name, "d", model.numbers_.shape) for name in ("centre_", "scale_"))
    require(np.all(np.isfinite(model.centre_)), "centre_ is not finite")
    require(np.all((model.scale_ > 0.0) & (model.scale_ < np.inf)), "scale_ is not positive and finite")
    model.knot_places_ = _take_indices(stored, "knot_places_", len(model.numbers_))
    model.knots_ = stored.take_array("knots_", "d", model.knot_places_.shape)
    require(np.all(np.abs(model.knots_) <= model.MOST_SCALED), "knots_ are beyond the scaled numbers")
    model.missing_ = _take_indices(stored, "missing_", n_features)
    is_of_before = "penalties_" not in stored
    _restore_codes(model, forest, stored)
    n_columns = len(model.numbers_) + len(model.knots_) + len(model.missing_) + len(model.codes_)
    if model.is_sparse_:
        are_numbers = n_columns == n_features and not model.centre_.any()
        require(are_numbers, "an additive model of a sparse matrix has columns other than its numbers")
    n_rows = 1 if n_classes == 2 else n_classes
    weights = model.column_weights_ = stored.take_array("coef_", "d", (n_rows, n_columns))
    model.intercepts_ = stored.take_array("intercept_", "d", (n_rows,))
    require(np.abs(weights).sum() + np.abs(model.intercepts_).sum() < _GREATEST, "coef_ is not finite")
    if _MEANS in stored:
        model.column_means_ = stored.take_array(_MEANS, "d", (n_columns,))
        require(np.abs(model.column_means_).sum() < _GREATEST, f"{_MEANS} is not finite")
        require(not is_of_before, f"there is {_MEANS}, but no penalties_")
    stored.check_taken()
    if is_of_before:
        _spread_shared_code(model, forest)
    return model


def _restore_codes(model: AdditiveClassifier, forest: Any, stored: StoredModel) -> None:
    """Set the categories that have coefficients, and their penalties."""
    features = model.code_features_ = _take_indices(stored, "code_features_", forest.trees_[0].n_features)
    codes = model.codes_ = stored.take_array("codes_", "d", features.shape)
    n_codes = np.array([len(forest.categories_.get(feature, ())) for feature in features.tolist()])
    are_codes = (codes >= 0.0) & (codes < n_codes) & (codes == np.floor(codes))
    require(np.all(are_codes), "codes_ are not those of categories")
    step, is_next = np.diff(features), np.diff(codes) > 0.0
    require(np.all((step > 0) | ((step == 0) & is_next)), "codes_ are not in ascending order")
    n_columns = len(np.unique(features))
    # Files of before have none: all penalties were 1.
    has_penalties = "penalties_" in stored
    model.penalties_ = stored.take_array("penalties_", "d", (n_columns,)) if has_penalties else np.ones(n_columns)
    require(np.all((model.penalties_ > 0.0) & (model.penalties_ < np.inf)), "penalties_ are not positive and finite")


def _spread_shared_code(model: AdditiveClassifier, forest: Any) -> None:
    """Give categories a coefficient each which had one code when the model was saved."""
    n_first = model.column_weights_.shape[1] - len(model.codes_)
    n_categories = np.array([len(forest.categories_[feature]) for feature in model.code_features_.tolist()], np.int64)
    n_each = np.where(model.codes_ == SHARED_CODE, n_categories - SHARED_CODE, 1)
    indices = np.repeat(np.arange(len(n_each)), n_each)
    within = np.arange(len(indices)) - np.repeat(np.cumsum(n_each) - n_each, n_each)
    model.code_features_, model.codes_ = model.code_features_[indices], model.codes_[indices] + within
    columns = np.concatenate((np.arange(n_first), n_first + indices))
    model.column_weights_ = np.ascontiguousarray(model.column_weights_[:, columns])


def _take_indices(stored: StoredModel, name: str, n: int) -> NDArray[np.int64]:
    indices = stored.take_array(name, "q", (-1,))
    require(np.all((indices >= 0) & (indices < n)), f"{name} are not in 0 to {n - 1}")
    return indices


STACK_PART = Part(_store_stack, _restore_stack)
