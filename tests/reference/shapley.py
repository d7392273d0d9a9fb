"""Shapley values of a tree by all subsets of its features (Lundberg and others 2020, algorithm 1)."""

from itertools import combinations
from math import factorial


def expected(feature, children, weight, value, goes_left, known, node=0):
    """Return the expected prediction of a tree if only some features are known.

    `children[node]` is a pair, or None for a leaf; `goes_left[node]` says where the row goes.
    """
    if children[node] is None:
        return value[node]
    sides = [
        expected(feature, children, weight, value, goes_left, known, child)
        for child in children[node]
    ]  # fmt: skip
    if feature[node] in known:
        return sides[0] if goes_left[node] else sides[1]
    left, right = (weight[child] for child in children[node])
    return (left * sides[0] + right * sides[1]) / (left + right)


def shapley_values(feature, children, weight, value, goes_left, n_features):
    """Return the Shapley value of every feature."""
    split = {feature[node] for node in range(len(feature)) if children[node] is not None}

    def worth(known):
        return expected(feature, children, weight, value, goes_left, set(known))

    values = []
    for j in range(n_features):
        others, total = sorted(split - {j}), 0.0
        for size in range(len(others) + 1 if j in split else 0):
            chance = factorial(size) * factorial(len(others) - size) / factorial(len(others) + 1)
            for some in combinations(others, size):
                total += chance * (worth([*some, j]) - worth(some))
        values.append(total)
    return values
