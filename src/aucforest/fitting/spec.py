"""The specification of a fit: the parameters of an estimator, resolved once with the labels and features."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from types import SimpleNamespace
from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from aucforest._compile import compile_scorer, is_compiled
from aucforest._sklearn import check_monotonic_cst
from aucforest.columns.categorical import Categories
from aucforest.columns.dates import SECONDS, Dates
from aucforest.columns.expansion import FoundCategories, n_added
from aucforest.columns.target_rates import ENCODINGS, SETS, TargetRates
from aucforest.fitting.bootstrap import BootstrapSampler, resolve_sampler
from aucforest.fitting.target import Target
from aucforest.metrics.validation import LEAST_WEIGHT, MOST_WEIGHT, check_weights
from aucforest.tree.criteria.criterion import CUSTOM_CRITERION
from aucforest.tree.criteria.table import CRITERIA
from aucforest.tree.random import derive_tree_keys
from aucforest.tree.splitter import TreeParams

SPLITTERS = ("best", "random")
# The criteria of criterion="auto".
BUILT_IN = ("auc", "gini", "entropy", "hellinger")
_NO_LIMIT = 2**31 - 1


def resolve_params(params: Mapping[str, Any], n_rows: int, n_features: int, signs: tuple[int, ...] = ()) -> TreeParams:
    """Return the parameters of trees with one criterion and splitter; `signs` are those of `resolve_signs`."""
    max_depth, max_leaf_nodes = params["max_depth"], params["max_leaf_nodes"]
    min_samples_leaf = _resolve_rows(params["min_samples_leaf"], n_rows)
    return TreeParams(
        criterion=resolve_criterion(params["criterion"]),
        random_splits=params["splitter"] == "random",
        max_features=resolve_max_features(params["max_features"], n_features),
        max_depth=_NO_LIMIT if max_depth is None else min(int(max_depth), _NO_LIMIT),
        # Both children must have the minimum size.
        min_samples_split=max(2, 2 * min_samples_leaf, _resolve_rows(params["min_samples_split"], n_rows)),
        min_samples_leaf=min_samples_leaf,
        min_weight_leaf=0,
        min_gain=float(params["min_gain"]),
        max_leaf_nodes=0 if max_leaf_nodes is None else min(int(max_leaf_nodes), _NO_LIMIT),
        signs=np.array(signs, dtype=np.int8),
    )


@dataclass(frozen=True)
class FitSpec:
    """The specification of a fit, which does not depend on where the rows are."""

    variants: tuple[TreeParams, ...]  # one for each pair of criterion and splitter; all other parameters are equal
    variant_names: list[tuple[str, str]]  # the criterion and the splitter of each variant
    custom_criteria: tuple[Any, ...]  # the criterion function of each variant, None for built-in criteria
    min_weight_fraction_leaf: float
    balanced_subsample: bool  # whether classes are balanced in the sample of each tree
    sampler: BootstrapSampler | None  # None if each tree is grown on all rows
    class_weights: NDArray[np.float64] | None  # (n_classes,), None if all are 1 or differ from tree to tree
    # (n_kept,), sample weight times class weight of each row of positive weight; None if all are 1
    weights: NDArray[np.float64] | None
    max_bins: int | None  # parameters of the estimators, like the next two
    categorical_features: Any
    max_features: Any
    encodings: tuple[str, ...]  # allowed encodings of columns of many categories
    seed: int
    numbers: range  # the indices of the trees that the fit grows, which follow the trees of a warm start
    n_jobs: int | None
    verbose: int
    # The target rates and the found categories of the existing trees of a warm start, which new trees use.
    rates: TargetRates | None = None
    found: FoundCategories = field(default_factory=dict)
    # Rows for the choice of shrinkage and variant weights, as ascending indices among the rows of positive weight.
    scored: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    # Rows that are compared in pairs by the trees for which both rows are out of bag; indices as in `scored`.
    compared: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    n_sums: int = 0  # number of sums of out-of-bag probabilities that are kept for every row at the same time
    evidence_bytes: int = 0  # bytes of out-of-bag results that are kept for `scored`, `compared` and thresholds

    @property
    def params(self) -> TreeParams:
        """The parameters of the first variant."""
        return self.variants[0]

    @property
    def rows_with_values(self) -> NDArray[np.int64]:
        """The rows of `scored` and `compared`, whose feature values this process stores in order to predict them."""
        return np.union1d(self.scored, self.compared)

    def without_rows(self) -> "FitSpec":
        """Return the specification without the fields that depend on the rows, for other processes."""
        no_rows = np.empty(0, dtype=np.int64)
        return replace(self, sampler=None, weights=None, rates=None, found={}, scored=no_rows, compared=no_rows)

    @property
    def n_threads(self) -> int:
        """Number of threads of this process that grow trees."""
        return min(effective_n_jobs(self.n_jobs), cpu_count())

    @classmethod
    def resolve(
        cls,
        params: Mapping[str, Any],
        target: Target,
        names: Sequence[str] | None,
        n_features: int,
        seed: int,
        dates: Dates | None = None,
    ) -> "FitSpec":
        """Resolve the parameters of a tree or forest; raise ValueError or TypeError if one is not valid.

        `names` are the names of the columns. With `dates`, one column may become several of the `n_features` features.
        A warm start must replace `numbers`, `rates` and `found` in the result.
        """
        labels, classes = target.kept_labels, target.classes
        signs = resolve_signs(params["monotonic_cst"], names, n_features, len(classes), dates or {})
        by_class = weights_by_class(params["class_weight"], classes, labels, target.kept_weight)
        pairs = resolve_variants(params["criterion"], params["splitter"])
        criteria = list(dict.fromkeys(criterion for criterion, _ in pairs))
        if params["min_gain"] > 0 and len(criteria) > 1:  # their gains have different units
            raise ValueError(
                f"min_gain={params['min_gain']} is in units of one criterion, but criterion={params['criterion']!r}"
                f" mixes {', '.join(criteria)}: name one criterion, or set min_samples_leaf instead"
            )
        variants = [
            resolve_params({**params, "criterion": criterion, "splitter": splitter}, len(labels), n_features, signs)
            for criterion, splitter in pairs.values()
        ]
        # Out-of-bag scores use sample weights without class weights.
        sample_weight = check_weights(target.kept_weight, len(labels), of="y")
        return cls(
            variants=tuple(variants),
            variant_names=list(pairs),
            custom_criteria=tuple(criterion if callable(criterion) else None for criterion, _ in pairs.values()),
            min_weight_fraction_leaf=params["min_weight_fraction_leaf"],
            balanced_subsample=params["class_weight"] == "balanced_subsample",
            sampler=resolve_sampler(params, labels, classes, target.groups, seed) if "bootstrap" in params else None,
            class_weights=by_class,
            weights=combine_weights(labels, sample_weight, by_class),
            max_bins=params["max_bins"],
            categorical_features=params["categorical_features"],
            max_features=params["max_features"],
            encodings=resolve_encodings(params.get("categorical_encoding", SETS)),
            seed=seed,
            numbers=range(params.get("n_estimators", 1)),
            n_jobs=params.get("n_jobs", 1),
            verbose=params.get("verbose", 0),
        )


def tree_keys(seed: int, numbers: Iterable[int]) -> list[int]:
    """Return the keys of trees, which seed their random numbers, given the seed of the fit and the tree indices."""
    trees = np.array([*numbers], dtype=np.int64)
    keys = np.empty(len(trees), dtype=np.uint64)
    derive_tree_keys(np.uint64(seed), trees, keys)
    return keys.tolist()


def resolve_variants(criterion: Any, splitter: Any) -> dict[tuple[str, str], tuple[Any, str]]:
    """Return the variants of a forest, which are pairs of a criterion and a splitter, by the names of both.

    The criterion "auto" means all built-in criteria. The splitter "auto" means both splitters if there are several
    criteria, else "best".
    """
    criteria = BUILT_IN if isinstance(criterion, str) and criterion == "auto" else criterion
    if isinstance(criteria, str) or callable(criteria):
        criteria = [criteria]
    splitters = [splitter] if isinstance(splitter, str) else splitter
    if isinstance(splitter, str) and splitter == "auto":
        splitters = SPLITTERS if len(criteria) > 1 else SPLITTERS[:1]
    criteria_by_name = _by_name("criterion", criterion, criteria, CRITERIA)
    splitter_names = _by_name("splitter", splitter, splitters, SPLITTERS)
    return {(name, split): (value, split) for split in splitter_names for name, value in criteria_by_name.items()}


def _by_name(parameter: str, given: Any, values: Collection[Any], known: Collection[str]) -> dict[str, Any]:
    """Return criteria or splitters by name; raise ValueError if one is unknown or a duplicate, or if there are none."""
    by_name = {}
    for value in values:
        is_function = parameter == "criterion" and callable(value)
        if not is_function and (not isinstance(value, str) or value not in known):
            hint = "; 'auto' stands alone, not in a list" if isinstance(value, str) and value == "auto" else ""
            raise ValueError(f"{parameter}={given!r}: {value!r} is none of {', '.join(known)}{hint}")
        name = criterion_name(value)
        by_name["entropy" if name == "log_loss" else name] = value
    if not 0 < len(by_name) == len(values):
        hint = ", 'log_loss' is 'entropy'" if "log_loss" in map(str, values) else ""
        raise ValueError(f"{parameter}={given!r} must be a non-empty list without duplicates{hint}")
    return by_name


def resolve_encodings(encoding: Any) -> tuple[str, ...]:
    """Return the encodings of columns of many categories, in the order of `ENCODINGS`."""
    if isinstance(encoding, str):
        return ENCODINGS if encoding == "auto" else (encoding,)
    if not 0 < len(encoding) == sum(name in encoding for name in ENCODINGS):
        names = ", ".join(map(repr, ENCODINGS))
        raise ValueError(f"categorical_encoding={encoding!r} must be 'auto', or one or several of {names}")
    return tuple(name for name in ENCODINGS if name in encoding)


def criterion_name(criterion: Any) -> Any:
    """Return the name of a criterion. That of a function f is "f()", unlike the names of built-in criteria."""
    return f"{getattr(criterion, '__name__', 'function')}()" if callable(criterion) else criterion


def resolve_criterion(criterion: Any) -> int:
    """Return the code of a criterion; raise TypeError for a function that is not compiled."""
    if isinstance(criterion, str):
        return CRITERIA[criterion]
    if not is_compiled(criterion):
        name = getattr(criterion, "__name__", repr(criterion))
        raise TypeError(f"criterion: {name} is not compiled, decorate it with numba.njit")
    compile_scorer(criterion)
    return CUSTOM_CRITERION


def _resolve_rows(given: Any, n_rows: int) -> int:
    """Return a number of rows, at most n_rows + 1, given as an integer or as a fraction of n_rows."""
    return min(int(given), n_rows + 1) if isinstance(given, Integral) else int(np.ceil(given * n_rows))


def resolve_max_features(max_features: Any, n_features: int) -> int:
    """Return the number of features that are searched at a node."""
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, int(np.sqrt(n_features)))
    if max_features == "log2":
        return max(1, int(np.log2(n_features)))
    if isinstance(max_features, Integral):
        return min(int(max_features), n_features)
    return max(1, int(max_features * n_features))


def resolve_signs(
    monotonic_cst: Any, names: Sequence[str] | None, n_features: int, n_classes: int, dates: Dates
) -> tuple[int, ...]:
    """Return the sign of the monotonic constraint of each feature, or an empty tuple if there are no constraints.

    The constraint of a column of dates applies to its feature of time, but not to its features of other date parts.
    """
    n_more = n_added(dates)
    if monotonic_cst is None:
        return ()
    if isinstance(monotonic_cst, dict) and names is None:
        raise ValueError("monotonic_cst is a dict of feature names, but X has no feature names: pass an array")
    fitted = SimpleNamespace(n_features_in_=n_features - n_more, feature_names_in_=names)
    signs = tuple(check_monotonic_cst(fitted, monotonic_cst).tolist())
    if not any(signs):
        return ()
    if n_classes != 2:
        raise ValueError(f"monotonic_cst needs two classes, but y has {n_classes}")
    for feature, column in dates.items():
        if signs[feature] != 0 and column.parts[0] not in ("time", *SECONDS):
            raise ValueError(f"monotonic_cst of column {feature} must be 0, because date_parts has no time")
    return signs + (0,) * n_more


def check_signs(signs: NDArray[np.int8], categories: Categories) -> None:
    """Raise ValueError if a categorical feature has a monotonic constraint."""
    for feature in categories:
        if feature < len(signs) and signs[feature] != 0:
            raise ValueError(f"monotonic_cst of feature {feature} must be 0, because the feature is categorical")


def weights_by_class(
    class_weight: Any, classes: NDArray[Any], labels: NDArray[np.uint16], sample_weight: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Return the weights of the classes, (n_classes,), or None if all are 1 or they differ between trees."""
    if class_weight is None or class_weight == "balanced_subsample":
        return None
    totals = np.bincount(labels, sample_weight, minlength=len(classes))
    by_class = balance(totals)
    if class_weight != "balanced":
        present = totals > 0
        by_class[present] = compute_class_weight(class_weight, classes=classes[present], y=classes[present])
    bad = ~(np.isfinite(by_class) & (by_class > 0))
    if np.any(bad):
        k = int(np.argmax(bad))
        raise ValueError(
            f"class_weight of class {classes.tolist()[k]!r} must be positive and finite, but is {by_class[k]}"
        )
    return by_class


def balance(totals: NDArray[Any]) -> NDArray[np.float64]:
    """Return the factors that make the total weights of the classes equal, and 1 for classes without samples."""
    present, factors = totals > 0, np.ones(len(totals))
    factors[present] = totals.sum() / (np.count_nonzero(present) * totals[present])
    return factors


def combine_weights(
    labels: NDArray[np.uint16], sample_weight: NDArray[np.float64] | None, by_class: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Return the weights of rows in trees, or None if all are 1."""
    weights = sample_weight
    if by_class is not None:
        with np.errstate(over="ignore"):
            weights = by_class[labels] if sample_weight is None else sample_weight * by_class[labels]
    if weights is not None:
        outside = (weights < LEAST_WEIGHT) | (weights > MOST_WEIGHT)
        if np.any(outside):
            raise ValueError(
                f"sample_weight times class_weight must be 0, or from {LEAST_WEIGHT} to {MOST_WEIGHT}, but is"
                f" {weights[np.argmax(outside)]} for a row"
            )
    return weights
