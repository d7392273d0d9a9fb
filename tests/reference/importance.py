"""Out-of-bag sums, row by row and tree by tree."""

from tests.reference.tree import leaf_of, walk


def features_on_the_way(tree, row) -> set[int]:
    """Return the features that are compared on the path of a row of raw values."""
    return {int(tree.feature[node]) for node in walk(tree, row)[:-1]}


def out_of_bag_sums(trees, rows, counts) -> list[list[float]]:
    """Return the sums of predictions over trees that did not sample a row; counts[t][i] is how often tree t did."""
    sums = []
    for i, row in enumerate(rows):
        total = [0.0] * len(trees[0].prediction[0])
        for t, tree in enumerate(trees):
            if counts[t][i] == 0:
                for k, share in enumerate(tree.prediction[leaf_of(tree, row)]):
                    total[k] += share
        sums.append(total)
    return sums
