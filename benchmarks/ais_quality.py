"""What annealed importance sampling is worth: coverage on machines with exact answers, and the mushrooms.

    python benchmarks/ais_quality.py machines [--seeds 5]
    HARMONIUM_DATA=folder/with/mushrooms.npz python benchmarks/ais_quality.py mushrooms [--seeds 3]

machines: 20 random machines of 14 x 9 units and four strengths; how many standard errors each estimate misses the exact
value by, and how many are flagged. mushrooms: RBMs of 12 hidden units, whose exact value is known, and of 100, on a
data set whose modes Gibbs chains do not find from one another; per temperatures the estimate, both directions
and the verdict. No estimate may be called reliable and lie more than four errors from the exact value.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

import harmonium as hm


def machines(seeds: int) -> bool:
    """True when no reliable estimate misses by more than four errors and misses are as rare as they should be."""
    misses, flagged = [], 0
    for number in range(20):
        generator = np.random.default_rng(number)
        scale = (0.3, 0.6, 1.0, 1.5)[number % 4]
        weights = scale * generator.standard_normal((14, 9))
        model = hm.RBM.from_arrays(weights, generator.standard_normal(14), generator.standard_normal(9))
        exact = hm.log_partition(model, "exact").value
        for seed in range(seeds):
            estimate = hm.log_partition(model, hm.AIS(temperatures=200), seed=seed)
            flagged += not estimate.reliable
            misses.append((estimate.value - exact) / estimate.stderr)
    worst, within = np.abs(misses).max(), np.mean(np.abs(misses) < 1.96)
    print(
        f"{len(misses)} estimates: {within:.1%} within 1.96 errors, the worst {worst:.2f} errors off, {flagged} flagged"
    )
    return bool(worst < 4 and within > 0.88)


def mushrooms(seeds: int) -> bool:
    """True when every estimate that is called reliable is right where the exact value is known."""
    folder = os.environ.get("HARMONIUM_DATA")
    if not folder:
        sys.exit("set HARMONIUM_DATA to a folder that holds mushrooms.npz (arrays train, valid, test)")
    data = hm.load_data(Path(folder) / "mushrooms.npz")
    good = True
    for hidden in (12, 100):
        run = hm.fit(
            hm.RBM(data.width, hidden, seed=0), data, hm.PCD(), updates=10_000, learning_rate=0.1, seed=0
        )
        exact = hm.log_likelihood(run.model, data, "exact").value if hidden <= 20 else None
        print(f"{hidden} hidden units" + (f", exact {exact:.4f} nats per test row" if exact else ""))
        for temperatures in (100, 1000, 10_000):
            for seed in range(seeds):
                estimate = hm.log_likelihood(run.model, data, hm.AIS(temperatures=temperatures), seed=seed)
                verdict = "reliable" if estimate.reliable else "NOT reliable"
                print(
                    f"{temperatures:6d} temperatures, seed {seed}: {estimate.value:9.4f} +- {estimate.stderr:.4f}, "
                    f"{verdict}: {estimate.reason}",
                    flush=True,
                )
                if exact is not None and estimate.reliable:
                    good &= abs(estimate.value - exact) < 4 * estimate.stderr + 1e-4
    return good


def main() -> None:
    """Run one of the two; exit status 1 when a confident number is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", choices=("machines", "mushrooms"))
    parser.add_argument("--seeds", type=int)
    options = parser.parse_args()
    passed = machines(options.seeds or 5) if options.which == "machines" else mushrooms(options.seeds or 3)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
