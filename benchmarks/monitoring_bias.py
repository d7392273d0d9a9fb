"""How far are estimates without labels from the realized metrics on average, where positives are rare?

    python benchmarks/monitoring_bias.py [number of simulations, 400 by default]
    python benchmarks/monitoring_bias.py --alerts [number of simulations, 20 by default; tenfold without features]

Prints mean and standard deviation of estimated minus realized, each mean with its standard error, and how often 95 %
intervals hold the realized metric. With --alerts: how often chunks without a shift are alerts, because the shift is
beyond its limits, and how often they should be; each simulation has ten chunks of a reference and 25 new ones.
"""

import sys
import warnings

import numpy as np
from _timing import peak_rss_mib

from tests.monitoring.simulation import METRICS, errors, false_alerts

# positives expected in the reference, and its rows
SIZES = ((10, 1000), (20, 2000), (50, 2500), (100, 5000), (400, 20_000))
# of the mean logit of new rows, in standard deviations
SHIFTS = (0.0, 1.0, 2.0)
N_NEW = 2000
SCORES = {"none": "calibrated", "isotonic": "distorted"}


def count_alerts(repeats: int) -> None:
    """Print the false alarm rate of shifts, with its standard error, for scores alone and with features."""
    for with_features, what, times in ((False, "scores", 10), (True, "scores and features", 1)):
        for n_reference, n_chunk in ((2000, 100), (2000, 200)):
            rates, level = false_alerts(n_reference, n_chunk, 25, times * repeats, with_features)
            error = rates.std() / rates.size**0.5
            print(
                f"{n_reference} reference rows, chunks of {n_chunk}, {what}: {rates.mean():.4f} (standard error"
                f" {error:.4f}), level {level:.4f}"
            )


def main() -> None:
    """Print a row for each setting and metric."""
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--alerts"]:
        return count_alerts(int(sys.argv[2]) if len(sys.argv) > 2 else 20)
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print(f"{repeats} simulations")
    for positives, n_reference in SIZES:
        for shift in SHIFTS:
            for calibration, scores in SCORES.items():
                print(f"{positives} positives in {n_reference} reference rows, {scores} scores, shift {shift:g}")
                differences, held = errors(positives, n_reference, N_NEW, shift, calibration, repeats)
                for name, difference, inside in zip(("average_precision", *METRICS), differences.T, held.T):
                    known, inside = difference[~np.isnan(difference)], inside[~np.isnan(difference)]
                    spread = known.std()
                    print(
                        f"  {name:<18}{known.mean():+.4f} (standard error {spread / known.size**0.5:.4f}), "
                        f"standard deviation {spread:.3f}, coverage {inside.mean():.3f}"
                    )
    print(f"peak memory {peak_rss_mib():.0f} MiB")


if __name__ == "__main__":
    main()
