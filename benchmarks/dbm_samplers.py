"""Every sampler of the negative phase on the same deep Boltzmann machine, at equal updates: held-out likelihoods.

    python benchmarks/dbm_samplers.py --data digits --hidden 32,16 --updates 2000 --seeds 3

Persistent chains, 100 of them, moved by one step of the sampler at every update; mean-field inference; rows in batches
of 100, rates falling linearly from 0.1. Held-out rows are scored by the exact sum over the smaller of the hidden layers
of even and of odd number, minus a bracketed log Z, whose interval is printed. Unit updates say what an update costs.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

import harmonium as hm

SAMPLERS = {
    "Gibbs, 1 sweep": lambda: None,
    "Gibbs, 5 sweeps": lambda: "five",
    "parallel tempering, 10 rungs, learned": lambda: hm.ParallelTempering(10, schedule="learned"),
    "CAST 1:5, 10 levels": lambda: hm.CAST(5, 10),
    "tempered transitions, 20 rungs": lambda: hm.TemperedTransitions(20),
    "deep tempering": lambda: hm.DeepTempering(),
    "deep tempering, 4 hot": lambda: hm.DeepTempering(hot=4),
}


def trained(
    name: str, data: hm.DataSet, hidden: list[int], guide: list[int], updates: int, rate: float, seed: int
):
    """The run of one sampler from one seed."""
    sampler = SAMPLERS[name]()
    model: object = hm.DBM(data.width, hidden, seed=seed)
    rule = hm.PCD(5 if sampler == "five" else 1, inference="mean-field", inference_sweeps=10)
    if isinstance(sampler, hm.DeepTempering):
        model = hm.GuidedDBM(model, guide, seed=seed)
    if sampler not in (None, "five"):
        rule = hm.PCD(sampler=sampler, inference="mean-field", inference_sweeps=10)
    return hm.fit(model, data, rule, updates=updates, learning_rate=rate, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="digits")
    parser.add_argument("--hidden", default="32,16")
    parser.add_argument("--guide", default="16")
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samplers", default=",".join(map(str, range(len(SAMPLERS)))))
    parser.add_argument("--sweeps", type=int, default=300)
    settings = parser.parse_args()
    data = hm.load_data(settings.data)
    hidden, guide = ([int(size) for size in text.split(",")] for text in (settings.hidden, settings.guide))
    for name in (list(SAMPLERS)[int(place)] for place in settings.samplers.split(",")):
        found, cost, rates, began = [], 0, [], time.monotonic()
        for seed in range(settings.seeds):
            run = trained(name, data, hidden, guide, settings.updates, settings.rate, seed)
            state = run.state.rule_state.sampler
            sampler = run.history[-1]
            rates.append(sampler.get("swap_rate", float("nan")))
            score = hm.log_likelihood(run.model, data, hm.Bracket(sweeps=settings.sweeps), seed=1)
            found.append(round(float(score.value), 2))
            # How far the score is known, and whether it is trusted.
            row = {"name": name, "seed": seed, "value": score.value, "low": score.low, "high": score.high}
            print(json.dumps(row | {"reliable": score.reliable, "swap_rate": rates[-1]}), flush=True)
            del state
        values = np.array(found)
        print(
            f"| {name} | {values.mean():.2f} | {values.min():.2f} to {values.max():.2f} | {np.mean(rates):.2f} | "
            f"{time.monotonic() - began:.0f} s |",
            flush=True,
        )
        del cost


if __name__ == "__main__":
    main()
