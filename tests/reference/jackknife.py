"""The jackknives of bagged trees by loops over rows and trees, one test row and class at a time."""


def mean(values) -> float:
    return sum(values) / len(values)


def first_part(draws, shares) -> float:
    """Return the sum over training rows of the squared covariance of draws and prediction.

    draws[b][i] is how often tree b drew row i, shares[b] what it predicts (Wager, Hastie and Efron, equation 5).
    """
    away = [share - mean(shares) for share in shares]
    total = 0.0
    for i in range(len(draws[0])):
        average = mean([drawn[i] for drawn in draws])
        total += mean([(drawn[i] - average) * a for drawn, a in zip(draws, away)]) ** 2
    return total


def bias(draws, shares) -> float:
    """Return what the second part takes off, as the package forestci has it: n * mean variance of draws * v / B."""
    n_trees, n_rows = len(draws), len(draws[0])
    v = mean([(share - mean(shares)) ** 2 for share in shares])
    columns = [[drawn[i] for drawn in draws] for i in range(n_rows)]
    n_var = mean([mean([n * n for n in column]) - mean(column) ** 2 for column in columns])
    return n_rows * n_var * v / n_trees


def infinitesimal(draws, shares) -> float:
    """Return the variance by the infinitesimal jackknife."""
    return first_part(draws, shares) - bias(draws, shares)


def after_bootstrap(draws, shares) -> float:
    """Return the variance by the jackknife after bootstrap, from the trees that left each row out."""
    n_rows, p = len(draws[0]), (1 - 1 / len(draws[0])) ** sum(draws[0])
    left_out = [[float(n == 0) / p for n in drawn] for drawn in draws]
    return (n_rows - 1) / n_rows * infinitesimal(left_out, shares)
