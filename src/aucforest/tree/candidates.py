"""The features that a node looks at, drawn by its key."""

from aucforest._compile import bare_device
from aucforest.tree.histogram import row_of
from aucforest.tree.random import bounded, derive_key


@bare_device
def _is_constant(column, elements):  # type: ignore[no-untyped-def]
    """Say whether all elements share one code."""
    code = column[row_of(elements[0])]
    for i in range(1, len(elements)):
        if column[row_of(elements[i])] != code:
            return False
    return True


@bare_device
def draw_feature(key, n_drawn, scratch):  # type: ignore[no-untyped-def]
    """Return the next feature of a node after so many."""
    features = scratch.features
    pick = n_drawn + bounded(derive_key(key, n_drawn + 2), len(features) - n_drawn)
    feature = features[pick]
    features[pick] = features[n_drawn]
    features[n_drawn] = feature
    scratch.drawn[n_drawn] = pick
    return feature


@bare_device
def put_back(n_drawn, scratch):  # type: ignore[no-untyped-def]
    """Undo so many draws."""
    features = scratch.features
    while n_drawn > 0:
        n_drawn -= 1
        pick = scratch.drawn[n_drawn]
        feature = features[n_drawn]
        features[n_drawn] = features[pick]
        features[pick] = feature


@bare_device
def draw_features(columns, elements, key, max_features, scratch):  # type: ignore[no-untyped-def]
    """List in scratch.tried the features to search and return how many they are.

    A constant feature does not use up the budget of max_features.
    """
    n_tried, n_drawn = 0, 0
    while n_drawn < len(scratch.features) and n_tried < max_features:
        feature = draw_feature(key, n_drawn, scratch)
        n_drawn += 1
        scratch.tried[n_tried] = feature
        n_tried += not _is_constant(columns.codes[feature], elements)
    put_back(n_drawn, scratch)
    return n_tried
