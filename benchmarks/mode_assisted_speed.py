"""What mode-assisted training of fifty small nets costs on one core.

    python benchmarks/mode_assisted_speed.py [--updates 20000] [--members 50]

Shifting bars of 12 units, nets of 12 hidden ones: an RBM, and a DBM of 10 x 2 with five sweeps of mean field, by CD-1
and with modes. Seconds of CPU for so many updates in the compiled loop of ``hm.fit``, and for compiling it; reports are
left out. The bars, for 20 000 updates and the compiling with them: 20 s for RBMs, 40 s for DBMs.
"""

from __future__ import annotations

import argparse
import time

from protocol import one_core

one_core()

import jax
import numpy as np

import harmonium as hm
from harmonium.studies.mode_assisted_plan import Net, assisted, divergence
from harmonium.studies.mode_assisted_runs import bars, first_net
from harmonium.train.config import TrainConfig
from harmonium.train.drive import run_chunk
from harmonium.train.setup import prepare

MOST = {(12,): 20.0, (10, 2): 40.0}
"""Seconds of one core for 20 000 updates of 50 nets, by hidden layers."""

CHUNK = 1000


def seconds(net: Net, rule: object, updates: int, members: int) -> tuple[float, float]:
    """CPU seconds of the first compiled call less those of the next one, and of all updates."""
    settings = TrainConfig(
        updates=updates, batch_size=12, learning_rate=1.0, final_rate=0.001, members=members, initialize=False
    )
    nets = hm.Ensemble.of([first_net(net, seed) for seed in range(members)])
    setup = prepare(nets, bars(net.visible), rule, settings, "sgd")  # pyright: ignore[reportArgumentType]
    state, spent = setup.state, []
    for index in range(0, updates, CHUNK):
        began = time.process_time()
        rows = setup.order.rows(index, CHUNK)
        state = run_chunk(setup.trainer, state, setup.feed, *rows, min(CHUNK, updates - index))
        jax.block_until_ready(state)
        spent.append(time.process_time() - began)
    loop = float(np.mean(spent[1:]))
    return spent[0] - loop, sum(spent[1:]) + loop


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--updates", type=int, default=20_000)
    parser.add_argument("--members", type=int, default=50)
    options = parser.parse_args()
    if options.updates < 2 * CHUNK:
        parser.error(f"--updates must be at least {2 * CHUNK}, so that compiling can be told from the rest")
    for hidden, most in MOST.items():
        net = Net(12, hidden)
        found = {}
        for words, rule in (("CD-1", divergence(net)), ("modes", assisted(net))):
            compiling, loop = seconds(net, rule, options.updates, options.members)
            found[words] = loop
            print(f"{net.words}, {words}: {loop:.1f} s and {compiling:.1f} s of compiling", flush=True)
            if words == "modes" and (options.updates, options.members) == (20_000, 50):
                print(f"  {'within' if compiling + loop <= most else 'BEYOND'} {most:g} s", flush=True)
        print(f"  modes are {found['modes'] / found['CD-1']:.2f} times CD-1", flush=True)


if __name__ == "__main__":
    main()
