"""How good the models are, by exact likelihoods: digits against scikit-learn, and NLTCS against its known numbers.

    python benchmarks/quality.py digits [--seeds 5]
    HARMONIUM_DATA=folder/with/nltcs.npz python benchmarks/quality.py nltcs [--seeds 3]

digits: RBM 64 x 16, batches of 100, 4200 updates each. scikit-learn's BernoulliRBM gets the best *test* score of three
learning rates, seed by seed; ours has one setting for all seeds (256 chains, rate 1 falling to 0, weight decay 5e-4).
Both are scored from their arrays by the same exact evaluator. nltcs: 16 variables, where the best published scores are
near -6.0 nats.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

import harmonium as hm


def digits(seeds: int) -> bool:
    """Ours against scikit-learn's on the same rows; true when every seed gains at least 0.4 nat."""
    from sklearn.neural_network import BernoulliRBM

    data = hm.load_data("digits")
    print("RBM 64 x 16 on digits, 4200 updates: exact mean test log-likelihood, nats per row")
    print(f"{'seed':>4s}{'scikit-learn at rates .05, .1, .2':>38s}{'harmonium':>12s}{'gain':>8s}")
    gains = []
    for seed in range(seeds):
        peers = []
        for rate in (0.05, 0.1, 0.2):
            machine = BernoulliRBM(16, learning_rate=rate, batch_size=100, n_iter=300, random_state=seed)
            machine.fit(data.train.astype(float))
            arrays = (machine.components_.T, machine.intercept_visible_, machine.intercept_hidden_)
            peers.append(hm.log_likelihood(hm.RBM.from_arrays(*arrays), data.test).value)
        rule = hm.PCD(steps=1, chains=256)
        settings = {"updates": 4200, "learning_rate": 1.0, "weight_decay": 5e-4}
        run = hm.fit(hm.RBM(64, 16, seed=seed), data, rule, seed=seed, **settings)
        ours = hm.log_likelihood(run.model, data.test).value
        gains.append(ours - max(peers))
        scores = ", ".join(f"{score:.3f}" for score in peers)
        print(f"{seed:4d}{scores:>38s}{ours:12.3f}{gains[-1]:8.3f}", flush=True)
    print(f"smallest gain {min(gains):.3f}, mean {np.mean(gains):.3f}; target: at least 0.4 in each seed")
    return min(gains) >= 0.4


def nltcs(seeds: int) -> bool:
    """Exact test log-likelihoods by hidden units; true when the targets are met in every seed."""
    folder = os.environ.get("HARMONIUM_DATA")
    if not folder:
        sys.exit("set HARMONIUM_DATA to a folder that holds nltcs.npz (arrays train, valid, test)")
    data = hm.load_data(Path(folder) / "nltcs.npz")
    print(
        "RBM on NLTCS, PCD-1, 100 chains, batches of 100, rate 0.3 falling to 0: exact mean test log-likelihood"
    )
    good = True
    for hidden, updates, target in ((8, 60_000, -6.03), (32, 60_000, -6.0), (64, 60_000, -6.0)):
        scores = []
        for seed in range(seeds):
            run = hm.fit(
                hm.RBM(16, hidden, seed=seed), data, hm.PCD(), updates=updates, learning_rate=0.3, seed=seed
            )
            scores.append(hm.log_likelihood(run.model, data.test).value)
        good &= min(scores) >= target
        shown = ", ".join(f"{score:.4f}" for score in scores)
        print(f"{hidden:3d} hidden, {updates} updates: {shown} (target {target})", flush=True)
    return good


def main() -> None:
    """Run one comparison; exit status 1 when a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", choices=("digits", "nltcs"))
    parser.add_argument("--seeds", type=int)
    options = parser.parse_args()
    passed = digits(options.seeds or 5) if options.which == "digits" else nltcs(options.seeds or 3)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
