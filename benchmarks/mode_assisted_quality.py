"""How near ensembles come to the shifting bars with modes: divergences at a length and size of one's choice.

    python benchmarks/mode_assisted_quality.py 12,12 12,10,2 --updates 20000 --members 50
    python benchmarks/mode_assisted_quality.py 12,12 --centred --push-scale 0.05 --updates 20000 --members 50
    python benchmarks/mode_assisted_quality.py 24,22 24,18,4 --updates 100000 --members 12

Machines are layers from the bottom, bars half as long as the ring. Weights and biases start as normal numbers of 0.01,
rates fall linearly from 1 to 0.001, batches are all bars, and likelihoods are exact: the divergence is their distance
from minus the entropy of the bars, in nats. ``--rule cd`` is CD-1 without modes.
"""

from __future__ import annotations

import argparse
from itertools import pairwise

import numpy as np

import harmonium as hm


def machine(sizes: list[int], seed: int) -> hm.RBM | hm.DBM:
    """A machine of small normal parameters, biases among them."""
    draws = np.random.default_rng(seed)
    weights = [0.01 * draws.standard_normal(pair).astype(np.float32) for pair in pairwise(sizes)]
    biases = [0.01 * draws.standard_normal(size).astype(np.float32) for size in sizes]
    if len(sizes) == 2:
        return hm.RBM.from_arrays(weights[0], *biases)
    return hm.DBM.from_arrays(weights, biases)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sizes", nargs="+", help="layers of a machine, e.g. 12,10,2")
    parser.add_argument("--updates", type=int, default=20000)
    parser.add_argument("--members", type=int, default=50)
    parser.add_argument("--rule", choices=("modes", "cd"), default="modes")
    parser.add_argument("--push-scale", type=float, default=0.25)
    parser.add_argument("--centred", action="store_true")
    options = parser.parse_args()
    print(f"{options.rule}, {options.updates} updates of {options.members} machines")
    print("machine        median  worst 5 %   worst  within 0.01")
    for text in options.sizes:
        sizes = [int(size) for size in text.split(",")]
        deep = {"inference": "mean-field", "inference_sweeps": 5} if len(sizes) > 2 else {}
        base = hm.CD(1, centred=options.centred, **deep)
        rule = base if options.rule == "cd" else hm.ModeAssisted(base, push_scale=options.push_scale)
        members = hm.Ensemble.of([machine(sizes, seed) for seed in range(options.members)])
        bars = f"shifting-bars:length={sizes[0]}"
        run = hm.fit(
            members, bars, rule, updates=options.updates, learning_rate=1.0, final_rate=0.001, seed=0
        )
        scores = [one.value for one in hm.log_likelihood(run.model, bars).members]
        lost = np.sort(-np.log(sizes[0]) - np.array(scores))
        tail = lost[int(np.ceil(0.95 * len(lost))) - 1]
        share = 100 * np.mean(lost <= 0.01)
        print(f"{text:12} {np.median(lost):8.4f} {tail:10.4f} {lost[-1]:7.4f} {share:10.0f} %", flush=True)


if __name__ == "__main__":
    main()
