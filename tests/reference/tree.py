"""Steps of growing and traversing a tree in plain Python: keys, random features, gains, the leaf of a row."""

import math
from fractions import Fraction
from itertools import combinations

WORD = 2**64


def mix(key: int) -> int:
    """Return the finaliser of SplitMix64."""
    key = (key ^ key >> 30) * 0xBF58476D1CE4E5B9 % WORD
    key = (key ^ key >> 27) * 0x94D049BB133111EB % WORD
    return key ^ key >> 31


# Each purpose has 2**48 separate outputs.
PURPOSES = ("tree", "block", "row", "child", "feature", "split", "attempt", "category")


def derive_key(key: int, purpose: str, index: int) -> int:
    """Return the output number `index` of a purpose of SplitMix64 seeded with `key`."""
    return mix((key + 0x9E3779B97F4A7C15 * (2**48 * PURPOSES.index(purpose) + index + 1)) % WORD)


def sample_features(key: int, n_features: int) -> list[int]:
    """Return all features in the order in which a node samples them: a Fisher-Yates shuffle."""
    features = list(range(n_features))
    for n in range(n_features):
        low_bits = derive_key(key, "feature", n) % 2**32
        pick = n + low_bits * (n_features - n) // 2**32
        features[n], features[pick] = features[pick], features[n]
    return features


def auc_gain(left, right) -> Fraction:
    """Return the mean over pairs of max((1 - alpha + beta) / 2, (1 - beta + alpha) / 2), less 1 / 2."""
    to_right = [Fraction(r, n + r) for n, r in zip(left, right) if n + r > 0]
    pairs = [max((1 - a + b) / 2, (1 - b + a) / 2) for a, b in combinations(to_right, 2)]
    return sum(pairs) / len(pairs) - Fraction(1, 2)


def hellinger_gain(left, right) -> float:
    """Return the mean over pairs of the distance between the distributions of two classes over the children."""
    shares = [(n / (n + r), r / (n + r)) for n, r in zip(left, right) if n + r > 0]
    distances = [
        math.sqrt(sum((math.sqrt(p) - math.sqrt(q)) ** 2 for p, q in zip(one, other)))
        for one, other in combinations(shares, 2)
    ]
    return math.fsum(distances) / len(distances)


def gini(totals) -> Fraction:
    """Return 1 - sum q_k**2."""
    return 1 - sum(Fraction(t, sum(totals)) ** 2 for t in totals)


def entropy(totals) -> float:
    """Return -sum q_k log2 q_k."""
    return -math.fsum(t / sum(totals) * math.log2(t / sum(totals)) for t in totals if t > 0)


def impurity_decrease(impurity, left, right):
    """Return the impurity of a node less the weighted mean of its children's."""
    node = [n + r for n, r in zip(left, right)]
    share = Fraction(sum(left), sum(node))
    return impurity(node) - share * impurity(left) - (1 - share) * impurity(right)


GAINS = {
    "auc": auc_gain,
    "hellinger": hellinger_gain,
    "gini": lambda left, right: impurity_decrease(gini, left, right),
    "entropy": lambda left, right: impurity_decrease(entropy, left, right),
}


def walk(tree, row) -> list[int]:
    """Return the nodes from the root to the leaf of a row, which has raw values or codes of categories."""
    nodes, sets = [0], dict(zip(tree.set_nodes.tolist(), tree.sets.tolist()))
    while tree.feature[nodes[-1]] != -1:
        node = nodes[-1]
        value = row[tree.feature[node]]
        if math.isnan(value):
            is_left = tree.missing_left[node]
        elif node in sets:
            is_left = sets[node][int(value) // 64] >> int(value) % 64 & 1
        else:
            is_left = value <= tree.threshold[node]
        nodes.append(int(tree.left_child[node]) + (0 if is_left else 1))
    return nodes


def leaf_of(tree, row) -> int:
    """Return the leaf that a row reaches."""
    return walk(tree, row)[-1]
