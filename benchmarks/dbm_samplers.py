"""Every sampler of the negative phase on the same deep Boltzmann machine, at equal updates: held-out likelihoods.

    python benchmarks/dbm_samplers.py --data digits --hidden 32,16 --updates 2000 --seeds 2
    python benchmarks/dbm_samplers.py --data artificial-modes --hidden 10,10 --guide 10 --weight-scale 0.3

Persistent chains, 100 of them, moved by one step of the sampler at every update; mean-field inference; rows in batches
of 100, rates falling linearly. Held-out rows are scored by the exact sum over the smaller of the hidden layers of even
and of odd number, minus log Z, exact up to 20 units on the smaller side of the machine and else bracketed. Unit updates
are those of all chains and replicas in one update, in units of those of the first row: likelihoods, no times.
"""

from __future__ import annotations

import argparse

from protocol import one_core

one_core()

import numpy as np

import harmonium as hm

SAMPLERS = {
    "persistent chains, 1 sweep": {"steps": 1},
    "persistent chains, 5 sweeps": {"steps": 5},
    "parallel tempering, 10 rungs, learned": {"sampler": hm.ParallelTempering(10, schedule="learned")},
    "CAST 1:5, 10 levels": {"sampler": hm.CAST(5, 10)},
    "tempered transitions, 20 rungs": {"sampler": hm.TemperedTransitions(20)},
    "deep tempering": {"sampler": hm.DeepTempering()},
    "deep tempering, 4 hot": {"sampler": hm.DeepTempering(hot=4)},
}


def trained(name: str, data: hm.DataSet, options: argparse.Namespace, seed: int) -> hm.Run:
    """The run of one sampler from one seed."""
    hidden, guide = ([int(size) for size in text.split(",")] for text in (options.hidden, options.guide))
    model = hm.DBM(data.width, hidden, seed=seed, weight_scale=options.weight_scale)
    if "deep" in name:
        model = hm.GuidedDBM(model, guide, seed=seed, weight_scale=options.weight_scale)
    rule = hm.PCD(**SAMPLERS[name], inference="mean-field", inference_sweeps=10)
    return hm.fit(model, data, rule, updates=options.updates, learning_rate=options.rate, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="digits")
    parser.add_argument("--hidden", default="32,16")
    parser.add_argument("--guide", default="16", help="hidden layers of the guide")
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--weight-scale", type=float, default=0.01)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--samplers", type=int, nargs="+", default=range(len(SAMPLERS)))
    options = parser.parse_args()
    data = hm.load_data(options.data)
    least = None
    for name in (list(SAMPLERS)[place] for place in options.samplers):
        found, errors, swaps, cost = [], [], [], 0
        for seed in range(options.seeds):
            run = trained(name, data, options, seed)
            assert run.state is not None
            odd = sum(map(int, options.hidden.split(",")[::2]))
            score = hm.log_likelihood(run.model, data, "exact" if odd <= 20 else hm.Bracket(sweeps=300))
            found.append(score.value)
            errors.append(score.stderr)
            swaps.append(run.history[-1].get("swap_rate", np.nan))
            rule = hm.PCD(**SAMPLERS[name])
            cost = rule.sampler.unit_updates(run.model, run.state.rule_state.sampler)
        least = least or cost
        values = " ".join(f"{value:.2f}" for value in found)
        print(
            f"| {name} | {values} | {max(errors):.2f} | {cost / least:.1f} | {np.mean(swaps):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
