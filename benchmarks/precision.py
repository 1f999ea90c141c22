"""What products of weights rounded to bfloat16 gain, and what they cost in likelihood.

    python benchmarks/precision.py [--rounds 5] [--seeds 5]

Speed: the whole of ``hm.fit`` with either precision, PCD-1, per update. Likelihood: exact, of digits with 16 hidden
units, from the same seeds. Processors without instructions for bfloat16 (the first line says whether this one has
them) widen every number again before each product, and lose.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from protocol import Contestant, one_core, print_table, race, ratio

one_core()

import numpy as np

import harmonium as hm

PRECISIONS = ("float32", "bfloat16")


def speed(visible: int, hidden: int, batch: int, updates: int, rounds: int) -> None:
    """Both precisions in turn, at one size."""
    rows = (np.random.default_rng(0).random((2000, visible)) < 0.3).astype(np.uint8)
    model = hm.RBM(visible, hidden, seed=0)

    def fit(precision: str) -> Contestant:
        rule = hm.PCD(chains=batch, precision=precision)
        return Contestant(
            precision,
            lambda: hm.fit(model, rows, rule, updates=updates, batch_size=batch, learning_rate=0.01),
            updates,
        )

    racers = [fit(precision) for precision in PRECISIONS]
    race(racers, rounds)
    print_table(f"one PCD-1 update, {visible} x {hidden}, batch {batch}", racers, racers[0])
    print(f"float32 / bfloat16: {ratio(*racers):.2f}")


def likelihood(seeds: int) -> None:
    """Exact test log-likelihood of digits, both precisions from the same seeds."""
    data = hm.load_data("digits")
    differences = []
    for seed in range(seeds):
        scores = []
        for precision in PRECISIONS:
            rule = hm.PCD(chains=256, precision=precision)
            run = hm.fit(hm.RBM(64, 16, seed=seed), data, rule, updates=4200, learning_rate=0.3, seed=seed)
            scores.append(hm.log_likelihood(run.model, data).value)
        differences.append(scores[1] - scores[0])
        print(f"digits, seed {seed}: float32 {scores[0]:.3f}, bfloat16 {scores[1]:.3f} nats")
    spread = np.std(differences, ddof=1) / np.sqrt(seeds) if seeds > 1 else float("nan")
    print(f"bfloat16 - float32: {np.mean(differences):+.3f} +- {spread:.3f} nats")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    flags = Path("/proc/cpuinfo")
    known = flags.read_text().split() if flags.exists() else []
    print(f"instructions for bfloat16: {'yes' if {'avx512_bf16', 'amx_bf16'} & set(known) else 'no'}")
    speed(784, 500, 100, 400, options.rounds)
    speed(784, 1024, 500, 100, options.rounds)
    likelihood(options.seeds)


if __name__ == "__main__":
    main()
