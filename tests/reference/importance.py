"""Out-of-bag sums of one permuted column, row by row and tree by tree."""

from tests.reference.tree import leaf_of, walk


def features_on_the_way(tree, row) -> set[int]:
    """Return the features that a row of raw values is asked for."""
    return {int(tree.feature[node]) for node in walk(tree, row)[:-1]}


def out_of_bag_sums(trees, rows, counts, feature=0, column=None) -> list[list[float]]:
    """Return the sums of predictions over trees that did not draw a row; counts[t][i] is how often tree t did.

    With a column, its values stand in place of the feature's.
    """
    sums = []
    for i, row in enumerate(rows):
        changed = list(row)
        if column is not None:
            changed[feature] = column[i]
        total = [0.0] * len(trees[0].prediction[0])
        for t, tree in enumerate(trees):
            if counts[t][i] == 0:
                for k, share in enumerate(tree.prediction[leaf_of(tree, changed)]):
                    total[k] += share
        sums.append(total)
    return sums
