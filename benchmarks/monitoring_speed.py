"""How fast is performance estimation without labels? NannyML is the peer, live in its own environment.

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
from _timing import interleaved

from aucforest.monitoring import CBPE, Chunks

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


def main() -> None:
    """Print all figures."""
    warnings.simplefilter("ignore", UserWarning)
    with TemporaryDirectory() as folder:
        if len(sys.argv) > 1:
            with NannyML(str(Path(sys.argv[1]).absolute())) as peer:
                print(f"NannyML {peer.version}")
                compare_speed(peer, folder)
        else:
            print(HOW)
            compare_speed(None, folder)


if __name__ == "__main__":
    main()
