"""How close are the values of `explain` to the Shapley values of log odds by all subsets of features?

    python benchmarks/log_odds_reasons.py

explains 100 rows of the abalone data, which have 8 features, by models of 20 trees, in one step, four steps, which is
what `explain` takes, and sixteen. Exact are the Shapley values of the game in which the worth of a subset of known
features is the log odds of the model, made of the means of its trees where a row goes both ways at splits on others.
"""

from functools import partial

import numpy as np
from scipy.special import softmax

from aucforest import AUCForestClassifier, AUCStackingClassifier
from aucforest.datasets import load_abalone
from aucforest.estimators._combination import Combination, log_proba, residual_score
from aucforest.inspection import explain, explanation

N_TRAIN, N_ROWS, N_TREES = 3_000, 100, 20
TARGETS = {
    "18 rings and more": lambda rings: rings >= 18,
    "10 rings and more": lambda rings: rings >= 10,
    "up to 7, 8 to 11, 12 rings and more": lambda rings: np.digitize(rings, [8, 12]),
}


def add_leaves(tree, X, known, unknown, total, node=0):
    """Add to total, (n_rows, n_subsets, n_classes), the leaves below a node.

    `known` says which rows pass the splits of each feature above the node, and `unknown` in which proportion all do.
    """
    feature = tree.feature[node]
    if feature < 0:
        shares = np.ones((len(X), 1))
        for j in range(X.shape[1]):
            shares = np.hstack((shares * unknown[j], shares * known[:, j : j + 1]))
        total += shares[:, :, None] * tree.prediction[node]
        return
    left, is_left = tree.left_child[node], X[:, feature] <= tree.threshold[node]
    for child, goes in ((left, is_left), (left + 1, ~is_left)):
        more, share = known.copy(), unknown.copy()
        more[:, feature] *= goes
        share[feature] *= tree.weight[child] / tree.weight[node]
        add_leaves(tree, X, more, share, total, child)


def worths_of_forest(forest, X):
    """Return the class probabilities of a forest for all subsets of features, (n_rows, n_subsets, n_classes)."""
    total = np.zeros((len(X), 2 ** X.shape[1], len(forest.classes_)))
    for tree in forest.trees_:
        add_leaves(tree, X, np.ones(X.shape), np.ones(X.shape[1]), total)
    total /= len(forest.trees_)
    flat = total.reshape(-1, total.shape[2])
    return flat if forest.calibration_ is None else forest.calibration_.apply(flat)


def worths_of_stack(stack, X):
    """Return the class probabilities of a stack, as those of a forest."""
    forest, residual, boosted, linear = stack.members_.values()
    proba, (effects, means) = worths_of_forest(forest, X), linear.effects(X)
    is_known = (np.arange(2 ** X.shape[1])[:, None] >> np.arange(X.shape[1])) & 1
    of_linear = np.einsum("knf,sf->nsk", effects, is_known) + means
    of_residual = residual_score(worths_of_forest(residual, X), proba)
    of_boosted = stack._boosted_scale * worths_of_forest(boosted, X)
    scores = [log_proba(proba), of_residual, of_boosted, log_proba(softmax(of_linear.reshape(proba.shape), axis=1))]
    return Combination(stack.weights_, stack.intercepts_).apply(scores)


def shapley_values(worth, n_features):
    """Return the Shapley values of worths, (n_rows, n_subsets)."""
    subsets = np.arange(worth.shape[1])
    size = np.array([int(subset).bit_count() for subset in subsets])
    factorial = np.cumprod(np.append(1.0, np.arange(1.0, n_features + 1)))
    values = []
    for j in range(n_features):
        without = subsets[subsets >> j & 1 == 0]
        chance = factorial[size[without]] * factorial[n_features - 1 - size[without]] / factorial[n_features]
        values.append((worth[:, without + 2**j] - worth[:, without]) @ chance)
    return np.stack(values, axis=1)


def main():
    X, rings = load_abalone(return_X_y=True)
    rows = X[N_TRAIN : N_TRAIN + N_ROWS]
    forest = partial(AUCForestClassifier, N_TREES, random_state=0)
    models = {"forest": forest(), "stack": AUCStackingClassifier(forest(), random_state=0)}
    print(f"{'':10}steps  correlation  mean difference  same first reason")
    for target, label in TARGETS.items():
        print(target)
        for name, model in models.items():
            model.fit(X[:N_TRAIN], label(rings[:N_TRAIN]))
            worths = worths_of_stack if name == "stack" else worths_of_forest
            proba = np.maximum(worths(model, rows), 1e-9)
            others = np.stack([np.delete(proba, k, axis=1).sum(axis=1) for k in range(proba.shape[1])], axis=1)
            log_odds = (np.log(proba) - np.log(others)).reshape(N_ROWS, -1, proba.shape[1])
            first = 1 if proba.shape[1] == 2 else 0
            exact = np.stack([shapley_values(log_odds[..., k], X.shape[1]) for k in range(first, proba.shape[1])], -1)
            for n_steps in (1, 4, 16):
                explanation._N_STEPS = n_steps
                found = explain(model, rows).values.reshape(exact.shape)
                correlation = np.corrcoef(found.ravel(), exact.ravel())[0, 1]
                difference = np.abs(found - exact).mean() / np.abs(exact).mean()
                same = np.mean(np.abs(found).argmax(axis=1) == np.abs(exact).argmax(axis=1))
                print(f"  {name:8}{n_steps:5}{correlation:13.3f}{difference:17.0%}{same:19.0%}")


if __name__ == "__main__":
    main()
