"""Ladders on Artificial Modes at the settings of the Deep Tempering paper.

    python benchmarks/artificial_modes.py [--sampler pt cast cast-decaying] [--updates 1000000] [--every 20000]

A centred RBM of 784-10 units, weights 0.01 N(0, 1), zero biases, visible offset at the mean of the data and hidden
offset 0.5, batches of 5, 5 chains, a constant rate of 1e-4. Parallel tempering has 10 uniform rungs and a uniform base;
CAST 1:10 has 100 levels and the same base, with the constant gain 10 of the authors or with the decaying one.

Rows come from a fixed sample of the generator, ``artificial-modes:rows=200000`` unless told otherwise: `hm.fit` takes
a data set and no stream, and a run of a million updates reads each row 25 times. LL is the entropy of the data,
-78.826 nats, less the gap log q - log p of the two mean log-probabilities on the same 10 000 test rows, log Z exact
over the 1024 hidden states. Bars after a million updates: CAST 1:10 within [-165, -125], PT 5 x 10 within [-200, -125].
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from protocol import one_core

one_core()

import numpy as np

import harmonium as hm

SAMPLERS = {
    "gibbs": None,
    "pt": hm.ParallelTempering(10, base="uniform"),
    "cast": hm.CAST(10, 100, gain=10, base="uniform"),
    "cast-decaying": hm.CAST(10, 100, base="uniform"),
}
BARS = {"pt": (-200, -125), "cast": (-165, -125), "cast-decaying": (-165, -125)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sampler", nargs="+", choices=SAMPLERS, default=["pt", "cast", "cast-decaying"])
    parser.add_argument("--updates", type=int, default=1_000_000)
    parser.add_argument("--every", type=int, default=20_000, help="updates between two printed likelihoods")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60, help="a run stops after so long")
    options = parser.parse_args()
    data = hm.load_data(f"artificial-modes:rows={options.rows}")
    truth = data.log_probability(data.test)
    assert truth is not None
    assert data.entropy is not None
    folder = tempfile.mkdtemp()
    for name in options.sampler:
        began, found = time.perf_counter(), []
        rule = hm.PCD(chains=5, sampler=SAMPLERS[name], offset_rate=0.0, burn_in=0)
        for end in range(options.every, options.updates + 1, options.every):
            if not found:
                run = hm.fit(
                    hm.RBM(784, 10, seed=options.seed, weight_scale=0.01),
                    data,
                    rule,
                    updates=end,
                    batch_size=5,
                    learning_rate=1e-4,
                    final_rate=1e-4,
                    initialize=False,
                    seed=options.seed,
                    out=Path(folder) / name,
                )
            else:
                # The rate is constant, so that a new stretch goes on as the old one would have.
                run = hm.resume(Path(folder) / name, updates=end, data=data)
            gap = float(np.mean(truth - np.asarray(hm.log_likelihood(run.model, data.test, rows=True).value)))
            found.append(-data.entropy - gap)
            spent = time.perf_counter() - began
            print(
                f"{name:14s} {end:8d} updates  LL {found[-1]:8.2f}  {1e6 * spent / end:6.1f} us/update",
                flush=True,
            )
            if spent > 60 * options.minutes:
                break
        low, high = BARS.get(name, (-np.inf, np.inf))
        tail = found[-max(1, len(found) // 10) :]
        print(
            f"{name}: final {found[-1]:.2f}, best {max(found):.2f}, mean of the last tenth {np.mean(tail):.2f}; bar "
            f"[{low}, {high}] {'kept' if low <= found[-1] <= high else 'MISSED'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
