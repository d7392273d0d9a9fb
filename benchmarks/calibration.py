"""What the calibration of a forest is worth: log loss, Brier score and slopes on test samples, with and without it.

    python benchmarks/calibration.py sets [--held-out] [--folds N]   the sets of ranking.py of at most 5,000 rows
    python benchmarks/calibration.py trees [--seeds N]               simulated classes, by number of trees and rare rows
    python benchmarks/calibration.py peers [--seeds N]               simulated classes, against scikit-learn's forest
    python benchmarks/calibration.py shrinkage [--seeds N]           classes with linear log odds, by given shrinkage
    python benchmarks/calibration.py price                           the time of a fit, with and without, in pairs

The same trees give both: without the calibration, a forest predicts the mean over trees. Default parameters.
"""

import argparse
import warnings
from collections.abc import Callable
from time import perf_counter

import numpy as np
import pandas as pd
from ranking import tasks
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold
from tqdm import tqdm

from aucforest import AUCForestClassifier
from aucforest.metrics.roc import class_roc_auc

MOST_ROWS, LEAST = 5000, 1e-15


def log_loss(proba: np.ndarray, y: np.ndarray) -> float:
    return float(-np.mean(np.log(np.clip(proba[np.arange(len(y)), y], LEAST, 1.0))))


def brier(proba: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(np.sum((proba - np.eye(proba.shape[1])[y]) ** 2, axis=1)))


def slope(proba: np.ndarray, y: np.ndarray) -> float:
    """Return the slope b of a recalibration of test samples; the penalty (b - 1)^2 keeps it finite."""
    logs, rows = np.log(np.maximum(proba, LEAST)), np.arange(len(y))

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        scores = parameters[0] * logs + np.append(0.0, parameters[1:])
        norm = logsumexp(scores, axis=1)
        residual = np.exp(scores - norm[:, None])
        value = np.sum(norm - scores[rows, y]) + (parameters[0] - 1.0) ** 2
        residual[rows, y] -= 1.0
        of_slope = np.sum(residual * logs) + 2.0 * (parameters[0] - 1.0)
        return value, np.append(of_slope, residual.sum(axis=0)[1:])

    return float(minimize(loss, np.append(1.0, np.zeros(proba.shape[1] - 1)), jac=True, method="L-BFGS-B").x[0])


def with_and_without(forest: AUCForestClassifier, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of a forest, and the means over its trees."""
    calibrated, calibration = forest.predict_proba(X), forest.calibration_
    forest.calibration_ = None
    plain = forest.predict_proba(X)
    forest.calibration_ = calibration
    return calibrated, plain


def run_sets(options: argparse.Namespace) -> None:
    """Print means over data sets of test metrics; slopes are of the test samples of all folds together."""
    rows = []
    for one in tqdm([one for one in tasks(held_out=options.held_out) if len(one.y) <= MOST_ROWS]):
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(one.X, one.y))[: options.folds]
        found, by_fold = [], []
        for fold, (train, test) in enumerate(folds):
            forest = AUCForestClassifier(random_state=fold).fit(one.X[train], one.y[train])
            pair = with_and_without(forest, one.X[test])
            found.append((*pair, one.y[test]))
            y = one.y[test]
            by_fold.append([f(proba, y) for f in (log_loss, brier, lambda p, y: class_roc_auc(y, p)) for proba in pair])
        calibrated, plain, y = map(np.concatenate, zip(*found))
        n_rare = int(np.bincount(one.y).min())
        rows.append(
            (one.name, len(np.unique(one.y)), n_rare, *np.mean(by_fold, axis=0), slope(calibrated, y), slope(plain, y))
        )
    names = ["set", "n_classes", "n_rare"]
    names += [f"{metric}{end}" for metric in ("log_loss", "brier", "auc", "slope") for end in ("", "_plain")]
    table = pd.DataFrame(rows, columns=names).set_index("set")
    print(f"{len(table)} sets, {options.folds} folds: means, medians")
    print(table.agg(["mean", "median"]).round(4).to_string())
    print("sets with at least 50 rows of the rarest class:")
    print(table[table["n_rare"] >= 50].agg(["count", "mean", "median"]).round(4).to_string())
    gain = table["log_loss"] - table["log_loss_plain"]
    error = gain.std() / np.sqrt(len(gain))
    print(f"log loss {gain.mean():+.4f} (standard error {error:.4f}), lower on {np.sum(gain < 0)} of {len(gain)} sets")
    print(f"higher by more than .003 on {np.sum(gain > 0.003)}, by more than .01 on {np.sum(gain > 0.01)} sets")
    print(f"highest: {gain.sort_values().tail(4).round(4).to_dict()}")
    for title, some in (("two classes", table["n_classes"] == 2), ("more classes", table["n_classes"] > 2)):
        of_auc = (table["auc"] - table["auc_plain"])[some]
        print(f"AUC, {title}: {of_auc.mean():+.5f}, lowest {of_auc.min():+.5f} ({of_auc.idxmin()})")


def linear(X: np.ndarray) -> np.ndarray:
    return X[:, :6] @ np.array([1.0, -1.0, 0.8, 0.8, -0.5, 0.5])


def sharp(X: np.ndarray) -> np.ndarray:
    """Return log odds of classes that a boundary separates but for 3 % of the labels."""
    return np.log(0.97 / 0.03) * np.sign(X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 0.7 * X[:, 3])


def interactions(X: np.ndarray) -> np.ndarray:
    return 1.5 * X[:, 0] * X[:, 1] + 1.2 * X[:, 2] * (X[:, 3] > 0.0) - X[:, 4] - 1.2


def rare(intercept: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda X: 1.2 * X[:, 0] + X[:, 1] + X[:, 2] * X[:, 3] + intercept


CLASSES = {
    "linear, 50 %": linear,
    "sharp boundary, 3 % flipped": sharp,
    "interactions, 30 %": interactions,
    "rare, 3 %": rare(-5.0),
    "rare, 1 %": rare(-6.3),
}


def simulate(log_odds: Callable[[np.ndarray], np.ndarray], n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 10))
    return X, (rng.random(n_rows) < expit(log_odds(X))).astype(int)


def with_rare_rows(
    log_odds: Callable[[np.ndarray], np.ndarray], n_rare: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return 1,000 samples, of which n_rare are of the second class, at the log odds less a constant."""
    X, y = simulate(log_odds, 40_000, seed)
    chosen = np.concatenate((np.flatnonzero(y == 1)[:n_rare], np.flatnonzero(y == 0)[: 1000 - n_rare]))
    return X[chosen], y[chosen]


def compare(values: np.ndarray, others: np.ndarray) -> str:
    difference = values - others
    return f"{difference.mean():+.4f} ± {difference.std(ddof=1) / np.sqrt(len(difference)):.4f}"


def run_trees(options: argparse.Namespace) -> None:
    """Print test log losses with and without calibration by the numbers of trees and of rare samples."""
    print("log loss with calibration less that without, and the mean slope, over seeds; 1,000 samples")
    for name in ("linear, 50 %", "interactions, 30 %", "rare, 3 %"):
        for n_rare in (10, 30, 100):
            # The test samples have the class frequencies of the training samples.
            test = [with_rare_rows(CLASSES[name], n_rare, 10_000 + i) for i in range(4)]
            X_test, y_test = map(np.concatenate, zip(*test))
            for n_trees in (5, 10, 30, 100, 300, 1000):
                losses, slopes = [], []
                for seed in range(options.seeds):
                    forest = AUCForestClassifier(n_trees, random_state=seed)
                    forest.fit(*with_rare_rows(CLASSES[name], n_rare, seed))
                    losses.append([log_loss(proba, y_test) for proba in with_and_without(forest, X_test)])
                    slopes.append(1.0 if forest.calibration_ is None else forest.calibration_.slope)
                calibrated, plain = np.array(losses).T
                print(
                    f"{name}, {n_rare} rare samples, {n_trees} trees: {plain.mean():.4f}, "
                    f"{compare(calibrated, plain)}, slope {np.mean(slopes):.2f}",
                    flush=True,
                )


def run_peers(options: argparse.Namespace) -> None:
    """Print test metrics less those of scikit-learn's forest, with and without calibration; 1,500 samples."""
    print("metrics less those of scikit-learn's forest (300 trees), without and with calibration, over seeds")
    for name, log_odds in CLASSES.items():
        rows = []
        for seed in range(options.seeds):
            X, y = simulate(log_odds, 1500, seed)
            X_test, y_test = simulate(log_odds, 10_000, 1000 + seed)
            peer = RandomForestClassifier(300, random_state=seed).fit(X, y).predict_proba(X_test)
            forest = AUCForestClassifier(random_state=seed).fit(X, y)
            probas = (*with_and_without(forest, X_test), peer)
            # The Brier score of two classes is that of the second one.
            rows.append([[log_loss(proba, y_test), brier(proba, y_test) / 2.0] for proba in probas])
        calibrated, plain, peer = np.moveaxis(rows, 1, 0)
        for index, metric in enumerate(("log loss", "Brier score")):
            before, after = (compare(each[:, index], peer[:, index]) for each in (plain, calibrated))
            print(f"{name}, {metric}: {before}, calibrated {after}", flush=True)


def run_shrinkage(options: argparse.Namespace) -> None:
    """Print test log losses with and without calibration by the amount of shrinkage; 1,500 samples, 300 trees."""
    for amount in (5.0, 200.0, 1000.0):
        losses, slopes = [], []
        for seed in range(options.seeds):
            forest = AUCForestClassifier(shrinkage=amount, random_state=seed).fit(*simulate(linear, 1500, seed))
            X_test, y_test = simulate(linear, 10_000, 1000 + seed)
            losses.append([log_loss(proba, y_test) for proba in with_and_without(forest, X_test)])
            slopes.append(forest.calibration_.slope)
        calibrated, plain = np.mean(losses, axis=0)
        print(f"shrinkage {amount:g}: {plain:.4f}, calibrated {calibrated:.4f}, mean slope {np.mean(slopes):.2f}")


def run_price(options: argparse.Namespace) -> None:
    """Print the time of fits with and without calibration, in turn."""
    for n_rows, n_features in ((500, 10), (3_000, 20), (20_000, 30), (100_000, 30)):
        X, y = simulate(linear, n_rows, 0)
        X = np.hstack((X, np.random.default_rng(1).normal(size=(n_rows, n_features - 10))))
        times: dict[str | None, list[float]] = {"auto": [], None: []}
        for repeat in range(2 + options.seeds):
            for calibration in ("auto", None) if repeat % 2 else (None, "auto"):
                start = perf_counter()
                AUCForestClassifier(calibration=calibration, random_state=0).fit(X, y)
                times[calibration].append(perf_counter() - start)
        ratios = np.array(times["auto"][2:]) / np.array(times[None][2:])
        medians = [np.median(times[each][2:]) for each in ("auto", None)]
        print(
            f"{n_rows} x {n_features}: {1e3 * medians[0]:.1f} ms with, {1e3 * medians[1]:.1f} ms without, "
            f"median ratio of pairs {np.median(ratios):.3f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = {
        "sets": run_sets,
        "trees": run_trees,
        "peers": run_peers,
        "shrinkage": run_shrinkage,
        "price": run_price,
    }
    parser.add_argument("what", choices=commands)
    parser.add_argument("--held-out", action="store_true", help="the sets on which no default was chosen")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    commands[options.what](options)


if __name__ == "__main__":
    main()
