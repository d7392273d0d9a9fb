"""The fitted attributes of stacks in model files: the members, and the weights and intercepts of their combination."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.columns.categorical import differing_features
from aucforest.columns.expansion import n_added
from aucforest.columns.target_rates import RateTable, are_same_rates
from aucforest.estimators._additive import AdditiveClassifier
from aucforest.estimators._forest_files import DECISION, describe_rate_table, restore_rate_table
from aucforest.estimators._model_files import (
    Field,
    are_finite,
    restore_fields,
    restore_model,
    store_fields,
    store_model,
)
from aucforest.persistence.model_file import Arrays, StoredModel, require

_FOREST = "AUCForestClassifier"
# Maximum of a sum of absolute coefficients, and of a scale, so that the product of two of them is finite.
_MAX_COEF_SUM = 1e150


def _are_positive(values: NDArray[np.float64], model: Any) -> Any:
    return np.all((values > 0.0) & (values < np.inf))


def _are_bounded(values: NDArray[np.float64], model: Any) -> Any:
    return np.abs(values).sum() < _MAX_COEF_SUM


def _are_weights(values: NDArray[np.float64], model: Any) -> Any:
    return np.all(values >= 0.0) and _are_bounded(values, model)


def _are_below(n: int) -> Callable[[Any, Any], Any]:
    return lambda values, model: np.all((values >= 0) & (values < n))


_STACK = (
    Field("coef_", lambda stack: (len(stack.members_),), _are_weights, attribute="weights_"),
    Field("intercept_", lambda stack: stack.classes_.shape, _are_bounded, attribute="intercepts_"),
    *DECISION,
    Field("boosted_scale", accepts=lambda x, _: 0.0 < x < _MAX_COEF_SUM, attribute="_boosted_scale", is_optional=True),
)


def _additive_fields(forest: Any) -> tuple[Field, ...]:
    """Return the fields of an additive model on the features of a forest; a field may depend on earlier fields."""
    n_features, n_classes = forest.n_features_in_ + n_added(forest.expanded_), len(forest.classes_)
    n_rows, n_numbers = 1 if n_classes == 2 else n_classes, n_features - len(forest.categories_)
    max_knot = AdditiveClassifier.MOST_SCALED

    def n_columns(model: Any) -> int:
        return n_numbers + len(model.knots_) + len(model.missing_) + len(model.codes_)

    def are_codes(values: NDArray[np.float64], model: Any) -> Any:
        """Return whether values are codes of categories, or of cells (pairs) of interactions, in ascending order."""
        features, n_codes_of = model.code_features_, {f: len(values) for f, values in forest.categories_.items()}
        n_codes_of |= {n_features + i: n_codes_of[t.feature] * t.n_parts for i, t in enumerate(model.interactions)}
        n_codes = np.array([n_codes_of.get(feature, 0) for feature in features.tolist()])
        step, is_next = np.diff(features), np.diff(values) > 0.0
        is_rising = np.all((step > 0) | ((step == 0) & is_next))
        is_code = (values >= 0.0) & (values < n_codes) & (values == np.floor(values))
        return is_rising and np.all(is_code)

    return (
        Field("centre_", lambda _: (n_numbers,), are_finite),
        Field("scale_", lambda _: (n_numbers,), _are_positive),
        Field("knot_places_", lambda _: (-1,), _are_below(n_numbers), dtype="q", attribute="knot_indices_"),
        Field("knots_", lambda model: model.knot_indices_.shape, lambda knots, _: np.all(abs(knots) <= max_knot)),
        Field("missing_", lambda _: (-1,), _are_below(n_features), dtype="q"),
        Field("code_features_", lambda _: (-1,), dtype="q"),
        Field("codes_", lambda model: model.code_features_.shape, are_codes),
        Field("penalties_", lambda model: np.unique(model.code_features_).shape, _are_positive),
        Field("coef_", lambda model: (n_rows, n_columns(model)), _are_bounded, attribute="column_weights_"),
        Field("intercept_", lambda _: (n_rows,), _are_bounded, attribute="intercepts_"),
        Field("column_means_", lambda model: (n_columns(model),), _are_bounded),
    )


def _store_stack(stack: Any) -> tuple[Arrays, dict[str, Any]]:
    arrays, metadata = store_fields(stack, _STACK), {}
    for name, member in stack.members_.items():
        if name != "linear":
            member_arrays, metadata[name] = store_model(member)
        elif isinstance(member, AdditiveClassifier):
            member_arrays = store_fields(member, _additive_fields(stack.members_["forest"]))
            metadata[name] = {"is_sparse": member.is_sparse_}
            if member.interactions:
                metadata[name]["interactions"] = list(map(describe_rate_table, member.interactions))
            member_arrays |= {f"interactions.{i}.edges": table.edges for i, table in enumerate(member.interactions)}
        else:
            kind = type(member).__name__
            raise TypeError(f'linear: a {kind} cannot be saved: use linear="auto", or pickle the stack')
        arrays |= {f"{name}/{array}": values for array, values in member_arrays.items()}
    return arrays, metadata


def _restore_stack(stack: Any, stored: StoredModel) -> None:
    stack.members_ = {}
    if "old" in stored:
        stack.members_["old"] = _restore_member(stack, stored, "old", _FOREST, "AUCStackingClassifier")
    forest = stack.members_["forest"] = _restore_member(stack, stored, "forest", _FOREST)
    for name in ("residual", "boosted"):
        if name in stored:
            other = stack.members_[name] = _restore_member(stack, stored, name, _FOREST)
            differing = differing_features(forest.categories_, other.categories_)
            require(not differing, "the forests of the stack have different categories")
            require(forest.expanded_ == other.expanded_, "the forests of the stack have different features")
            are_same = are_same_rates(forest.target_rates_, other.target_rates_)
            require(are_same, "the forests of the stack have different target rates")
    if "linear" in stored:
        stack.members_["linear"] = _restore_additive(forest, stored.take_model("linear"))
    for name in ("categories_", "expanded_", "target_rates_"):
        setattr(stack, name, getattr(forest, name))
    stack.threshold_ = None
    restore_fields(stack, stored, _STACK)
    is_paired = ("boosted" in stack.members_) == hasattr(stack, "_boosted_scale")
    require(is_paired, 'only one of boosted_scale and the member "boosted" is stored')


def _restore_member(stack: Any, stored: StoredModel, name: str, *kinds: str) -> Any:
    """Return a member of one of the classes `kinds`, which must have the classes and features of the stack."""
    member = restore_model(stored.take_model(name), *kinds)
    for attribute in ("classes_", "n_features_in_", "feature_names_in_"):
        of_stack, of_member = (np.asarray(getattr(model, attribute, None)) for model in (stack, member))
        require(np.array_equal(of_stack, of_member), f"{attribute} of the stack and of its forests differ")
    return member


def _restore_additive(forest: Any, stored: StoredModel) -> AdditiveClassifier:
    n_features = forest.n_features_in_ + n_added(forest.expanded_)
    model = AdditiveClassifier(tuple(sorted(forest.categories_)), _restore_interactions(forest, stored, n_features))
    model.is_sparse_, model.classes_ = stored.take("is_sparse", bool), np.arange(len(forest.classes_))
    require(not (model.is_sparse_ and model.interactions), "an additive model of a sparse matrix has interactions")
    model.n_features_, model.numbers_ = n_features, model.find_numbers(n_features)
    restore_fields(model, stored, _additive_fields(forest))
    if model.is_sparse_:
        are_numbers = model.column_weights_.shape[1] == len(model.numbers_) == n_features and not model.centre_.any()
        require(are_numbers, "an additive model of a sparse matrix has columns other than its numbers")
    stored.check_taken()
    return model


def _restore_interactions(forest: Any, stored: StoredModel, n_features: int) -> tuple[RateTable, ...]:
    """Return the interactions of an additive model; without interactions, their list is missing in the file."""
    tables = list[RateTable]()
    for i, item in enumerate(stored.take_list("interactions", list) if "interactions" in stored else []):
        tables.append(restore_rate_table(item, stored, f"interactions.{i}", forest, n_features))
        require(tables[-1].is_interaction, "an interaction of the additive model has only one feature")
    return tuple(tables)


STACK_SECTION = _store_stack, _restore_stack
