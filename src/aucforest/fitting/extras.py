"""Parameters that plain trees do without: monotonic constraints, randomised splits, a user's own criterion."""

from typing import Any

from sklearn.utils.validation import _check_monotonic_cst

from aucforest._compile import compile_scorer, is_compiled
from aucforest.tree.criteria import CRITERIA, OWN


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
