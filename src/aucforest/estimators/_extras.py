"""Parameters that plain trees do without: monotonic constraints, extremely randomised cuts, a user's own criterion."""

from typing import Any

from sklearn.utils.validation import _check_monotonic_cst

from aucforest._compile import compile_scorer, is_compiled
from aucforest.tree.criteria import CRITERIA, OWN
from aucforest.tree.random_cuts import RandomCuts, make_random_cuts
from aucforest.tree.walks import Extras, make_extras


def resolve_criterion(criterion: Any) -> tuple[int, Any]:
    """Return the code of a criterion, and its function if it is a user's own."""
    if isinstance(criterion, str):
        return CRITERIA[criterion], None
    if not is_compiled(criterion):
        name = getattr(criterion, "__name__", repr(criterion))
        raise TypeError(f"criterion: {name} is not compiled, decorate it with numba.njit")
    compile_scorer(criterion)
    return OWN, criterion


def resolve_monotonic_cst(estimator: Any) -> tuple[int, ...]:
    """Return the sign of every feature's constraint; nothing where there is no constraint."""
    if estimator.monotonic_cst is None:
        return ()
    signs = tuple(_check_monotonic_cst(estimator, estimator.monotonic_cst).tolist())
    if not any(signs):
        return ()
    if len(estimator.classes_) != 2:
        raise ValueError(f"monotonic_cst needs two classes, but y has {len(estimator.classes_)}")
    for feature in estimator.categories_:
        if signs[feature] != 0:
            raise ValueError(f"monotonic_cst of feature {feature} must be 0: it is categorical, without an order")
    return signs


def make_search_options(
    params: Any, is_sampled: bool, n_classes: int, capacity: int
) -> tuple[Extras | None, RandomCuts | None]:
    """Return what growing trees of up to so many nodes needs beside the rules; nothing where nothing is asked for.

    is_sampled says whether the edges of bins come from a sample of the rows.
    """
    if not (params.random_cuts or params.signs or params.own_criterion or params.max_leaf_nodes):
        return None, None
    address = compile_scorer(params.own_criterion).address if params.own_criterion else 0
    extras = make_extras(params.signs, address, n_classes, capacity)
    return extras, make_random_cuts(is_sampled, n_classes) if params.random_cuts else None


def check_own_criterion(params: Any, extras: Extras | None) -> None:
    """Refuse a criterion that raised an exception in a search."""
    if extras is not None and extras.own.failed[0]:
        raise ValueError(f"criterion: {params.own_criterion.py_func.__name__} raised an exception")
