"""The fitted attributes of trees and forests in model files."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucforest.columns.categorical import encode_numbers, feature_kinds, number_of
from aucforest.columns.dates import DateColumn, are_parts, is_zone
from aucforest.columns.expansion import (
    RANGES,
    Expanded,
    IntegerColumn,
    TextColumn,
    columns_of_found,
    n_added,
    prefixes_of,
)
from aucforest.columns.target_rates import ENCODINGS, RateTable, TargetRates
from aucforest.estimators._calibration import Calibration
from aucforest.estimators._mixture import describe_alternatives
from aucforest.estimators._model_files import (
    MOST_FEATURES,
    Field,
    are_finite,
    are_frequencies,
    restore_fields,
    store_fields,
)
from aucforest.fitting.bootstrap import N_HALVES, SampleRecord, digest_groups
from aucforest.persistence.folded_trees import fold, unfold
from aucforest.persistence.model_file import Arrays, StoredModel, narrow, require
from aucforest.persistence.plain_values import fold_labels, unfold_labels
from aucforest.tree.features import NUMERIC
from aucforest.tree.tree import MISSING_CODE

_MOST_CHARACTERS = 100  # maximum length of the name of a criterion, a splitter or an encoding


def _store_trees(model: Any) -> tuple[Arrays, dict[str, Any]]:
    arrays, categories = fold(model.trees_), []
    for feature, labels in model.categories_.items():
        plain, label_arrays = fold_labels(labels, f"categories.{feature}")
        categories.append([feature, plain])
        arrays |= label_arrays
    metadata: dict[str, Any] = {"categories": categories}
    dates = {j: column for j, column in model.expanded_.items() if isinstance(column, DateColumn)}
    if dates:
        metadata["dates"] = [[feature, list(parts), zone] for feature, (parts, zone) in dates.items()]
    integers = {j: column.sizes for j, column in model.expanded_.items() if isinstance(column, IntegerColumn)}
    if integers:
        metadata["integers"] = [f if widths == (1,) else [f, *widths] for f, widths in integers.items()]
    texts = {j: column.sizes for j, column in model.expanded_.items() if isinstance(column, TextColumn)}
    if texts:
        metadata["prefixes"] = [[feature, *sizes] for feature, sizes in texts.items()]
    if model.target_rates_ is not None:
        rate_arrays, metadata["rates"] = _store_rates(model.target_rates_)
        arrays |= rate_arrays
    return arrays, metadata


def _restore_trees(model: Any, stored: StoredModel) -> None:
    dates = stored.take_list("dates", list) if "dates" in stored else []
    integers = stored.take("integers", list) if "integers" in stored else []
    prefixes = stored.take_list("prefixes", list) if "prefixes" in stored else []
    model.expanded_ = _restore_expanded(model, dates, integers, prefixes)
    n_features = model.n_features_in_ + n_added(model.expanded_)
    model.categories_ = {}
    for item in stored.take_list("categories", list):
        require(len(item) == 2, "each item of categories must be a feature and its labels")
        feature, labels = item
        is_feature = type(feature) is int and 0 <= feature < n_features
        require(is_feature, f"there are categories of feature {feature}, but {n_features} features")
        model.categories_[feature] = unfold_labels(labels, stored, f"categories.{feature}")
    _check_categories(model)
    model.target_rates_ = None
    if "rates" in stored:
        model.target_rates_ = _restore_rates(model, stored, n_features)
        n_features += model.target_rates_.n_features
    set_features = np.flatnonzero(feature_kinds(model.categories_, n_features) != NUMERIC)
    model.trees_ = unfold(stored, n_features, len(model.classes_), set_features)


def _restore_expanded(model: Any, dates: list[list[Any]], integers: list[Any], prefixes: list[list[Any]]) -> Expanded:
    expanded = dict[int, DateColumn | IntegerColumn | TextColumn]()

    def add(feature: Any, column: DateColumn | IntegerColumn | TextColumn) -> None:
        is_new = type(feature) is int and 0 <= feature < model.n_features_in_ and feature not in expanded
        require(is_new, f"feature {feature} of dates, integers or text is unknown or repeated")
        expanded[feature] = column

    for item in dates:
        require(len(item) == 3, "each item of dates must be a feature, its parts and a zone")
        feature, parts, zone = item
        require(isinstance(parts, list) and are_parts(parts), "the parts of dates are unknown")
        require(zone is None or (isinstance(zone, str) and is_zone(zone)), "the zone of dates is unknown")
        add(feature, DateColumn(tuple(parts), zone))
    for item in integers:
        feature, *widths = item if isinstance(item, list) and item else [item, 1]
        are_widths = all(type(width) is int for width in widths) and set(widths) <= {1, *RANGES}
        require(len(widths) > 0 and are_widths and widths == sorted(set(widths)), "the ranges of integers are unknown")
        add(feature, IntegerColumn(tuple(widths)))
    for item in prefixes:
        require(len(item) == 2 and type(item[1]) is int, "each item of prefixes must be a feature and a number")
        add(item[0], TextColumn((item[1],)))
    are_categorical = [not isinstance(column, DateColumn) and column.is_categorical for column in expanded.values()]
    require(are_categorical == sorted(are_categorical), "the columns of integers are not in order")
    return expanded


def _check_categories(model: Any) -> None:
    """Raise ModelFormatError if a feature has categories that it cannot have."""
    found = columns_of_found(model.n_features_in_, model.expanded_)
    for feature in model.categories_:
        column = model.expanded_.get(feature)
        is_categorical = column is None or (not isinstance(column, DateColumn) and column.is_categorical)
        is_column = feature < model.n_features_in_ and is_categorical
        require(is_column or feature in found, f"there are categories of feature {feature}, which is a number")
    for feature, (column, size) in columns_of_found(model.n_features_in_, model.expanded_, categorical=True).items():
        values, prefixes = (model.categories_.get(index, np.empty(0)).tolist() for index in (column, feature))
        is_text = isinstance(model.expanded_[column], TextColumn)
        are_valid = size > 0 and len(values) > 0 and (not is_text or all(isinstance(value, str) for value in values))
        are_distinct = len(set(prefixes)) == len(prefixes)
        expected = {value[:size] if is_text else number_of(value) // size for value in values} if are_valid else set()
        are_prefixes = are_valid and are_distinct and set(prefixes) == expected
        require(are_prefixes, f"column {column} has other first characters than its categories")
    for feature, (column, _) in found.items():
        if isinstance(model.expanded_[column], TextColumn):
            continue
        values = model.categories_.get(feature, np.empty(0))
        are_integers = values.dtype == np.int64 and len(values) > 0 and np.all((values >= -(2**53)) & (values <= 2**53))
        # `encode_numbers` searches the categories, so they must be distinct and in order.
        is_valid = are_integers and np.array_equal(encode_numbers(values, values), np.arange(len(values)))
        require(is_valid, f"the categories of column {column} are not integers up to 2**53, or not in order")


def _store_rates(rates: TargetRates) -> tuple[Arrays, dict[str, Any]]:
    arrays: Arrays = {"rates.frequencies": rates.frequencies, "rates.factors": rates.factors}
    for i, table in enumerate(rates.tables):
        arrays |= {f"rates.{i}.totals": narrow(table.totals, "BHIq"), f"rates.{i}.edges": table.edges}
    return arrays, {"tables": list(map(describe_rate_table, rates.tables)), "classes": rates.classes.tolist()}


def describe_rate_table(table: RateTable) -> list[Any]:
    """Return the metadata of a rate table; its edges and totals are stored as arrays."""
    return [*table[:2], table.n_parts, table.smoothing, *([table.prior] if table.prior >= 0 else [])]


def _restore_rates(model: Any, stored: StoredModel, n_features: int) -> TargetRates:
    """Return the target rates of a file; `n_features` is the number of features without target rates."""
    metadata, n_classes = StoredModel({}, stored.take("rates", dict)), len(model.classes_)
    items, classes = metadata.take_list("tables", list), metadata.take_list("classes", int)
    metadata.check_taken()
    known = [1] if n_classes == 2 else sorted(set(range(n_classes)).intersection(classes))
    require(classes == known, "the classes of rates are unknown or not in order")
    require(0 < len(items) * len(classes) <= MOST_FEATURES, "there are no rates, or too many")
    tables: list[RateTable] = []
    for number, item in enumerate(items):
        table = restore_rate_table(item, stored, f"rates.{number}", model, n_features)
        n_cells = len(model.categories_[table.feature]) * table.n_parts
        totals = stored.take_array(f"rates.{number}.totals", "BHIq", (n_cells, n_classes)).astype(np.int64)
        is_positive = np.all(totals >= 0) and totals.sum(dtype=np.float64) < 2.0**62  # sums in int64 are exact
        require(is_positive, "the totals of rates are negative or too large")
        is_first = all(one.feature != table.feature for one in tables)
        require(is_first != table.is_interaction, "the tables of rates are not in order")
        tables.append(table._replace(totals=totals))
    alone = {table.feature: table.prior for table in tables if not table.is_interaction}
    prefixes = prefixes_of(model.n_features_in_, model.expanded_, model.categories_)
    for table in tables:
        feature, _ = prefixes.get(table.feature, (-1, None))
        has_prior = table.prior == feature and alone.get(feature) == -1 and not table.is_interaction
        is_valid = table.prior == -1 or has_prior
        require(is_valid, f"the rates of feature {table.feature} have the rates of feature {table.prior} as priors")
    frequencies = stored.take_array("rates.frequencies", "d", (n_classes,))
    factors = stored.take_array("rates.factors", "d", (n_classes,))
    require(are_frequencies(frequencies), "the frequencies of rates are not those of classes")
    # The factor of a class that is never sampled is 0.
    are_factors = np.all((factors >= 0.0) & (factors < np.inf)) and factors.max() > 0.0
    require(are_factors, "the factors of rates are not positive and finite")
    return TargetRates(tuple(tables), np.array(classes, dtype=np.int64), frequencies, factors)


def restore_rate_table(item: list[Any], stored: StoredModel, name: str, model: Any, n_features: int) -> RateTable:
    """Return a rate table of a file, without its totals; `n_features` is the number of features without target rates.

    `item` is the result of `describe_rate_table`, and `name` the prefix of the names of arrays.
    """
    is_table = list(map(type, item)) == [int, int, int, float, int][: max(4, len(item))]
    require(is_table, "a table of rates must be two features, a number of parts and a smoothing")
    feature, other, n_parts, smoothing, *prior = item
    categories = model.categories_
    require(feature in categories, f"there are rates of feature {feature}, which has no categories")
    is_valid = other == -1 or (0 <= other < n_features and other != feature)
    require(is_valid, f"the rates of feature {feature} interact with feature {other}, which is not another feature")
    require(0.0 < smoothing < np.inf, "the smoothing of rates is not positive and finite")
    edges = stored.take_array(f"{name}.edges", "d", (-1,))
    require(np.all(np.isfinite(edges)) and np.all(np.diff(edges) > 0.0), "the edges of rates are not finite and rising")
    n_expected: int | None = len(edges) + 1
    if other >= 0 and len(edges) == 0:
        n_expected = max(min(len(categories[other]), MISSING_CODE), 1) if other in categories else None
    has_parts = n_parts == n_expected and (other >= 0 or len(edges) == 0)
    require(has_parts, f"the rates of feature {feature} have a wrong number of parts or edges")
    return RateTable(feature, other, edges, n_parts, smoothing, np.empty((0, 0), dtype=np.int64), *prior)


def _restore_tree(model: Any, stored: StoredModel) -> None:
    _restore_trees(model, stored)
    require(len(model.trees_) == 1, f"{type(model).__name__} has {len(model.trees_)} trees instead of one")


def _are_positive_frequencies(values: NDArray[np.float64], model: Any) -> bool:
    return are_frequencies(values) and min(values.min(), model.class_prior_.min()) > 0.0


def _are_probabilities(values: NDArray[np.float64], model: Any = None) -> bool:
    """Return whether all values are probabilities or NaN."""
    return not np.any((values < 0.0) | (values > 1.0))


def _is_threshold(values: NDArray[np.float64], model: Any) -> Any:
    """Return whether values are a probability, class frequencies or a cost matrix."""
    n_classes = len(model.classes_)
    if values.ndim == 0:
        # Infinity means that no sample is predicted positive.
        return n_classes == 2 and (0.0 <= values <= 1.0 or values == np.inf)
    is_frequency = n_classes > 2 and values.shape == (n_classes,)
    return (is_frequency or values.shape == (n_classes, n_classes)) and are_finite(values)


def _are_sampled_groups(groups: NDArray[np.int32], forest: Any) -> Any:
    """Return whether the group indices of the rows are those of a sample record of the forest."""
    sampled = [(record.n_rows, record.n_groups, record.groups) for record in forest._sample_records]
    found = len(groups), int(groups.max(initial=-1)) + 1, digest_groups(groups)
    return groups.min(initial=0) >= 0 and found in sampled


# The class frequencies, threshold and out-of-bag results of a forest or a stack.
DECISION = (
    Field("class_prior_", lambda model: model.classes_.shape, are_frequencies),
    Field("prevalence_", lambda model: model.classes_.shape, _are_positive_frequencies, is_optional=True),
    Field("threshold_std_", is_optional=True),
    Field("oob_score_", is_optional=True),
    Field("oob_optimism_", is_optional=True),
    Field("oob_decision_function_", lambda model: (-1, len(model.classes_)), _are_probabilities, is_optional=True),
    Field("threshold_", lambda _: None, _is_threshold, is_optional=True),
)
_FOREST = (
    Field("groups", lambda _: (-1,), _are_sampled_groups, dtype="i", attribute="_groups", is_optional=True),
    *DECISION,
    Field("shrinkage_", accepts=lambda value, _: 0.0 <= value < np.inf),
    Field("dispersion", accepts=lambda value, _: 0.0 <= value < 1e6, attribute="dispersion_", is_optional=True),
)


def _store_forest(forest: Any) -> tuple[Arrays, dict[str, Any]]:
    arrays = store_fields(forest, _FOREST)
    if (calibration := forest.calibration_) is not None:
        slope, intercepts, *fit_statistics = calibration
        arrays["calibration"] = np.array([slope, *fit_statistics, *intercepts])
    # The last fields are only stored if they are used, because older versions of the package do not read them.
    records = [
        list(record)[: 7 if record.n_halves else 6 if record.n_groups else 4] for record in forest._sample_records
    ]
    metadata = {"seed": forest._seed, "drawn": records}
    alternatives = ("variants", forest.variants_, "mixture"), ("encodings", forest.encodings_, "encoding_mixture")
    for name, values, mixture in alternatives:
        if values:
            names = metadata[name] = list(dict.fromkeys(values))
            arrays[name] = np.array([names.index(value) for value in values], dtype=np.int64)
        if hasattr(forest, f"{mixture}_"):
            *columns, n_trees, _, scores, errors = getattr(forest, f"{mixture}_").values()
            lists = [column.tolist() for column in columns]
            metadata[mixture] = lists if len(lists) > 1 else lists[0]
            arrays |= {f"{mixture}_n_trees": n_trees, f"{mixture}_scores": np.stack((scores, errors))}
    return arrays, metadata


def _restore_alternatives(forest: Any, stored: StoredModel, name: str, mixture: str, *columns: str) -> list[Any]:
    """Return the variant or the encoding of each tree. Set `mixture_` or `encoding_mixture_`, if it is stored.

    A variant is a list of two names. An encoding is a name, so `encoding_mixture_` is stored as a list of names.
    """
    kind: type[Any] = list if len(columns) > 1 else str
    names, indices = stored.take_list(name, kind), stored.take_array(name, "q", (len(forest.trees_),))
    require(np.all((indices >= 0) & (indices < len(names))), f"the {name} of trees are unknown")
    if mixture in stored:
        values = stored.take_list(mixture, kind)
        values = values if len(columns) > 1 else [values]
        require(len(values) == len(columns), f"{mixture} must have {len(columns)} lists of names")
        of_column = dict(zip(columns, values))
        n_trees = stored.take_array(f"{mixture}_n_trees", "q", (-1,))
        for given in values:
            are_names = len(given) == len(n_trees) > 1 and {*map(type, given)} == {str}
            # An array of strings needs memory for the number of strings times the length of the longest.
            is_short = are_names and max(map(len, given)) <= _MOST_CHARACTERS
            require(is_short, f"the names of {mixture} are not short texts, or do not match the numbers of trees")
        are_counts = np.all((n_trees >= 0) & (n_trees <= len(forest.trees_)))
        require(are_counts, f"the numbers of trees of {mixture} are out of range")
        scores = stored.take_array(f"{mixture}_scores", "d", (2, len(n_trees)))
        require(_are_probabilities(scores), f"the scores of {mixture} are out of range")
        setattr(forest, f"{mixture}_", describe_alternatives(of_column, n_trees, scores))
    return [names[index] for index in indices.tolist()]


def _restore_sample_record(item: list[Any]) -> SampleRecord:
    """Return a sample record from an item of "drawn", the list of these records in files."""
    require(4 <= len(item) <= 7 and isinstance(item[1], list), "drawn is invalid")
    record = SampleRecord(*item)
    n_rows, sizes, replace, stream, n_groups, digest, n_halves = record
    are_counts = all(type(n) is int and n >= 0 for n in (n_rows, *sizes)) and n_halves in (0, N_HALVES)
    require(are_counts and type(replace) is bool and isinstance(stream, str), "drawn is invalid")
    require(type(n_groups) is int and n_groups >= 0 and isinstance(digest, str), "drawn has invalid groups")
    if sizes and not stream.startswith("aucforest"):  # older files contain only the version of numpy, or nothing
        stream = f"aucforest 0.2 and {stream}" if stream else "aucforest 0.2"
    return record._replace(sizes=tuple(sizes), stream=stream)


def _restore_calibration(stored: StoredModel, n_classes: int) -> Calibration | None:
    slope_std, n_samples = float("nan"), 0.0
    if "calibration" in stored:
        slope, slope_std, n_samples, *numbers = stored.take_array("calibration", "d", (3 + n_classes,)).tolist()
    elif "prior_correction" in stored:  # the name in older files
        slope, *numbers = stored.take_array("prior_correction", "d", (1 + n_classes,)).tolist()
    else:
        return None
    intercepts = np.array(numbers)
    # The intercept of a class that is never sampled is -inf.
    are_valid = np.all(intercepts < np.inf) and intercepts.max() > -np.inf
    is_valid = 0.0 < slope < np.inf and not slope_std < 0.0 and 0.0 <= n_samples < 2.0**53
    require(are_valid and is_valid, "the calibration has invalid values")
    return Calibration(slope, intercepts, slope_std, int(n_samples))


def _restore_forest(forest: Any, stored: StoredModel) -> None:
    message = "written by aucforest before 0.2: load and save it with aucforest 0.2, or fit the model again"
    require("variants" in stored, message)
    variants = _restore_alternatives(forest, stored, "variants", "mixture", "criterion", "splitter")
    require(all(list(map(type, variant)) == [str, str] for variant in variants), "the variants are unknown")
    forest.variants_, forest.encodings_ = list(map(tuple, variants)), []
    if forest.target_rates_ is not None:
        forest.encodings_ = _restore_alternatives(forest, stored, "encodings", "encoding_mixture", "encoding")
        require(set(forest.encodings_) <= set(ENCODINGS), "the encodings are unknown")
    forest._seed = stored.take("seed", int)
    require(0 <= forest._seed < 2**63, f"seed is {forest._seed}")
    forest._sample_records = list(map(_restore_sample_record, stored.take_list("drawn", list)))
    forest._groups = forest.threshold_ = None
    restore_fields(forest, stored, _FOREST)
    forest.calibration_ = _restore_calibration(stored, len(forest.classes_))
    if "positive_first" in stored:  # in older files; not used, because classes are sorted
        stored.take("positive_first", bool)


TREE_SECTION = _store_trees, _restore_tree
TREES_SECTION = _store_trees, _restore_trees
FOREST_SECTION = _store_forest, _restore_forest
