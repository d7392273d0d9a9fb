"""How far are estimates without labels from the realized metrics on average, where positives are rare?

    python benchmarks/monitoring_bias.py [number of simulations, 400 by default]

Prints mean and standard deviation of estimated minus realized, each mean with its standard error, and how often 95 %
intervals hold the realized metric.
"""

import sys
import warnings

import numpy as np
from _timing import peak_rss_mib

from tests.monitoring.simulation import METRICS, errors

# positives expected in the reference, and its rows
SIZES = ((10, 1000), (20, 2000), (50, 2500), (100, 5000), (400, 20_000))
# of the mean logit of new rows, in standard deviations
SHIFTS = (0.0, 1.0, 2.0)
N_NEW = 2000
SCORES = {"none": "calibrated", "isotonic": "distorted"}


def main() -> None:
    """Print a row for each setting and metric."""
    warnings.simplefilter("ignore")
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
