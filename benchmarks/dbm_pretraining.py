"""What pre-training is worth to a deep Boltzmann machine: jointly trained alone against levels first, equal updates.

    python benchmarks/dbm_pretraining.py [SEEDS] [UPDATES]

Digits, 64-20-10, whose test log-likelihood is exact. All arms make so many updates in all, of the same batches and
chains; what pre-training takes, two levels of a quarter each, joint training has less of. Prints one line for each seed
and the paired differences in nats per row.
"""

from __future__ import annotations

import sys

import numpy as np

import harmonium as hm
from harmonium.evaluate.likelihood import log_likelihood
from harmonium.rules.contrastive import Contrastive

SIZES = [20, 10]
RATE = 0.1


def joint_rule() -> Contrastive:
    """SML with five sweeps and a mean-field positive phase, as all arms end."""
    return hm.PCD(steps=5, chains=100, inference="mean-field", inference_sweeps=10)


def scores(seed: int, updates: int, data: hm.DataSet) -> dict[str, float]:
    """Exact mean test log-likelihood of every arm, in nats per row."""
    found = {}
    for name, scale in (("joint", 0.01), ("joint, weights of 0.1", 0.1)):
        alone = hm.DBM(data.width, SIZES, seed=seed, weight_scale=scale)
        run = hm.fit(alone, data, joint_rule(), updates=updates, learning_rate=RATE, seed=seed)
        found[name] = log_likelihood(run.model, data, "exact").value
        print(seed, name, round(found[name], 3), flush=True)
    fresh = hm.DBM(data.width, SIZES, seed=seed)
    for name, rule in (("CD-1..5 levels", hm.CD(1, final_steps=5)), ("PCD levels", hm.PCD(chains=100))):
        run = hm.fit_greedy(
            fresh,
            data,
            rule,
            updates=updates // 4,
            learning_rate=2 * RATE,  # of doubled parameters
            seed=seed,
            joint={"rule": joint_rule(), "updates": updates - 2 * (updates // 4), "learning_rate": RATE},
        )
        found[f"{name}, before (valid)"] = run.history[-2]["log_likelihood_valid"]
        found[f"{name}, joint"] = log_likelihood(run.model, data, "exact").value
    return found


def main(seeds: int, updates: int) -> None:
    """Print the table."""
    data = hm.load_data("digits")
    rows = []
    for seed in range(seeds):
        rows.append(scores(seed, updates, data))
        print(seed, {name: round(value, 3) for name, value in rows[-1].items()}, flush=True)
    for name in rows[0]:
        values = np.array([row[name] for row in rows])
        apart = values - np.array([row["joint"] for row in rows])
        print(f"{name:28s} mean {values.mean():8.3f}   minus joint {apart.mean():+.3f} +- {apart.std():.3f}")


if __name__ == "__main__":
    main(*(int(text) for text in (*sys.argv[1:], "3", "2000")[:2]))
