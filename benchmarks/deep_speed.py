"""What deep tempering costs beside persistent chains of the bottom RBM alone.

    python benchmarks/deep_speed.py [--updates 4000] [--rounds 9] [--parts]

784-10-10, batch of 5, 5 chains, Artificial Modes: microseconds of CPU for one update in the compiled loop of
``hm.fit``, reports left out. The bars: two levels at most 2.6 times the RBM's update, with four hot replicas at most
4.2 times. ``--parts`` adds what leaves something out: the stack without swaps, three levels, other numbers of hot
replicas, the order of the swaps.
"""

from __future__ import annotations

import argparse
from typing import Any

from protocol import Contestant, one_core, print_table, race, ratio

one_core()

import jax
import numpy as np

import harmonium as hm
from harmonium.train.config import TrainConfig
from harmonium.train.drive import run_chunk
from harmonium.train.setup import prepare

MOST = {"deep tempering": 2.6, "deep tempering, 4 hot": 4.2}
"""An update of the stack may cost so many of the RBM."""


def contestant(name: str, model: Any, rule: Any, data: Any, updates: int) -> Contestant:
    """So many updates in one compiled call."""
    settings = TrainConfig(updates=updates, batch_size=5, learning_rate=1e-4, final_rate=1e-4)
    setup = prepare(model, data, rule, settings, "sgd")
    order, real, epochs = setup.order.rows(0, updates)
    arguments = setup.trainer, setup.state, setup.feed, order, real, epochs, updates
    return Contestant(name, lambda: jax.block_until_ready(run_chunk(*arguments)), updates)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--updates", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--parts", action="store_true", help="add contestants that leave something out")
    options = parser.parse_args()
    data = hm.load_data("artificial-modes:rows=20000")
    two = hm.DBN(784, [10, 10], seed=0, weight_scale=0.3)
    three = hm.DBN(784, [10, 10, 10], seed=0, weight_scale=0.3)

    def racer(name: str, model: Any, sampler: Any) -> Contestant:
        return contestant(name, model, hm.PCD(chains=5, sampler=sampler), data, options.updates)

    plain = racer("RBM, persistent chains", hm.RBM(784, 10, seed=0, weight_scale=0.3), None)
    others = [
        racer("deep tempering", two, hm.DeepTempering()),
        racer("deep tempering, 4 hot", two, hm.DeepTempering(hot=4)),
    ]
    if options.parts:
        others += [
            racer("stack, persistent chains", two, None),
            racer("deep tempering, 1 hot", two, hm.DeepTempering(hot=1)),
            racer("deep tempering, 8 hot", two, hm.DeepTempering(hot=8)),
            racer("deep tempering, three levels", three, hm.DeepTempering()),
            racer("deep tempering, swaps last", two, hm.DeepTempering(order="sample-first")),
        ]
    racers = [plain, *others]
    race(racers, options.rounds)
    print_table("one update, 784-10-10, batch 5, 5 chains", racers, plain)
    for other in others:
        found = ratio(other, plain)
        limit = MOST.get(other.name, np.inf)
        verdict = "" if limit == np.inf else ("within" if found <= limit else "BEYOND")
        print(f"{other.name}: {found:.2f} of the RBM's update {verdict}", flush=True)


if __name__ == "__main__":
    main()
