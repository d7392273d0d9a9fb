"""How fast and how good is performance estimation without labels? NannyML is the peer, live in its own environment.

    python benchmarks/monitoring_speed.py [interpreter of an environment with nannyml]

Without an interpreter only our own figures are printed.
"""

import sys
import warnings
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from _nannyml import HOW, NannyML
from _timing import interleaved, peak_rss_mib

from aucforest.monitoring import CBPE, Chunks
from tests.monitoring.simulation import SHAPES, coverage, share_that_fires

ONE = Chunks.by_number(1)
TITLES = {
    "estimate": ("1e+06 rows: estimate and interval / bare AUC of the peer", "<= 1.5", "kernel"),
    "fit": ("1e+06 rows: fit", "<= 0.2", "fit"),
    "fit 10 classes": ("1e+05 rows, 10 classes: fit", "<= 0.1", "fit"),
}


def two_classes(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return scores and labels that are rarer than the scores say."""
    rng = np.random.default_rng(seed)
    score = rng.beta(0.8, 1.6, n_rows)
    return score, (rng.random(n_rows) < score**1.5).astype(int)


def many_classes(n_rows: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities and labels drawn from sharper ones."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(n_rows, n_classes))
    sharp, p = np.exp(1.3 * logits), np.exp(logits)
    bounds = np.cumsum(sharp / sharp.sum(axis=1, keepdims=True), axis=1)
    y_true = (rng.random((n_rows, 1)) > bounds[:, :-1]).sum(axis=1)
    return p / p.sum(axis=1, keepdims=True), y_true


def compare_speed(peer: NannyML | None, folder: str) -> None:
    """Print our seconds, those of the peer and the ratio; both take turns."""
    print(f"{'':<62}{'ours, s':>10}{'peer, s':>10}{'ratio':>8}  goal")
    score, y_true = two_classes(10**6)
    new, _ = two_classes(10**6, seed=1)
    fitted = CBPE().fit(y_score=score, y_true=y_true)
    assert fitted.calibrated_.all()
    _compare("estimate", partial(fitted.estimate, new, chunks=ONE), peer, folder, (new, y_true), repeats=7)
    _compare("fit", partial(CBPE().fit, y_true=y_true, y_score=score), peer, folder, (score, y_true), repeats=3)
    p, labels = many_classes(10**5, 10)
    _compare("fit 10 classes", partial(CBPE().fit, y_true=labels, y_score=p), peer, folder, (p, labels), repeats=3)


def _compare(name, ours, peer, folder, rows, *, repeats):  # type: ignore[no-untyped-def]
    """Time one pair."""
    title, goal, method = TITLES[name]
    functions = {"ours": ours}
    if peer is not None:
        np.savez(f"{folder}/rows.npz", y_score=rows[0], y_true=rows[1])
        peer.run("load", f"{folder}/rows.npz")
        functions["peer"] = partial(peer.run, method)
    interleaved(functions, 1)
    seconds = interleaved(functions, repeats)
    line = f"{title:<62}{seconds['ours']:>10.3f}"
    if peer is not None:
        line += f"{seconds['peer']:>10.3f}{seconds['ours'] / seconds['peer']:>8.3f}  {goal}"
    print(line)


def compare_estimates(peer: NannyML, folder: str) -> None:
    """Print the mean absolute error per chunk on the peer's data sets, and how close we come without corrections."""
    print(f"\n{'mean |estimated - realized| ROC AUC, chunks of 5000':<62}{'ours':>10}{'peer':>10}{'parity':>10}")
    for name in ("car_loan", "employment_MA", "mc"):
        with np.load(peer.run("replay", name, folder)) as stored:
            rows = dict(stored)
        fit, new = ([rows[f"{part}_{what}"] for what in ("y_score", "y_true")] for part in ("reference", "analysis"))
        fit[0], new[0] = (scores if scores.shape[1] > 1 else scores[:, 0] for scores in (fit[0], new[0]))
        options = {"multi_class": "ovr", "labels": rows["order"]}
        reference = {"y_true": fit[1], "y_score": fit[0], "chunks": Chunks.by_size(5000)}
        plain = CBPE(calibration=rows["fitted"].tolist(), bias_correction=False, **options).fit(**reference)
        ours = CBPE(**options).fit(**reference)
        results = [cbpe.estimate(new[0], y_true=new[1]).estimates for cbpe in (plain, ours)]
        realized = np.array([row.realized for row in results[0]])
        same, best = (np.array([row.estimate for row in result]) for result in results)
        errors = [np.abs(estimates - realized).mean() for estimates in (best, rows["estimated"])]
        apart = np.abs(same - rows["estimated"]).max()
        print(f"{name:<62}{errors[0]:>10.5f}{errors[1]:>10.5f}{apart:>10.1e}  goal <= peer, parity 1e-6 (mc 2e-6)")


def simulate() -> None:
    """Print how often intervals hold the realized metric and how often calibrated scores get a curve."""
    print("\ncoverage of 95 % intervals, 1000 simulations (goal 0.93 to 0.97)")
    for shape in SHAPES:
        for shifted in (False, True):
            for n_reference, n_new in ((500, 5000), (2000, 5000), (5000, 2000)):
                shares = coverage(shape, n_reference, n_new, 1000, shifted)
                scores = "shifted" if shifted else "same"
                figures = "  ".join(f"{metric} {share:.3f}" for metric, share in shares.items())
                print(f"  {shape:<6}{scores:<8} reference {n_reference}, new {n_new}: {figures}")
    print("share of 1000 references whose calibrated scores get a curve (goal <= 0.06), and of squared scores")
    for n_rows in (200, 1000, 5000):
        fires = [share_that_fires(n_rows, power, 1000) for power in (1.0, 2.0)]
        print(f"  {n_rows:>5} rows: {fires[0]:.3f}, {fires[1]:.3f}")


def main() -> None:
    """Print all figures."""
    warnings.simplefilter("ignore", UserWarning)
    with TemporaryDirectory() as folder:
        if len(sys.argv) > 1:
            with NannyML(str(Path(sys.argv[1]).absolute())) as peer:
                print(f"NannyML {peer.version}")
                compare_speed(peer, folder)
                compare_estimates(peer, folder)
        else:
            print(HOW)
            compare_speed(None, folder)
    simulate()
    print(f"\npeak memory {peak_rss_mib():.0f} MiB")


if __name__ == "__main__":
    main()
