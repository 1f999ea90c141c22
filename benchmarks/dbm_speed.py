"""What an update of a small deep Boltzmann machine costs in an ensemble, by ``hm.fit`` and in the bare loop.

    python benchmarks/dbm_speed.py [--members 50] [--sizes 24,12,10] [--updates 4000] [--rounds 5]

Batches of 10 rows, 10 chains, 5 sweeps of them at every update, 10 sweeps of mean field. CPU time of this process:
on a busy machine wall time says nothing, and CPU time too is longer than on a quiet one. Contestants take turns:

- ``hm.fit``: what a longer call of ``hm.fit(members=...)`` takes over one half as long, per member and update: all of
  a run but its start, its compilation and its reports. Of those, each with the exact likelihood of every member, both
  have as many, about twenty, from 4000 updates on.
- ``sweeps``: the 5 sweeps of the chains alone, in one compiled loop.
- ``sweeps, one by one``: the same, each sweep drawing its own words.
- ``mean field``: the 10 sweeps of the means alone, in one compiled loop.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from protocol import Contestant, one_core, print_table, race

one_core()

import jax
import jax.numpy as jnp
import numpy as np

import harmonium as hm
from harmonium.inference.mean_field import MeanField
from harmonium.numerics.compile import compile_function
from harmonium.numerics.random import Noise
from harmonium.samplers import gibbs
from harmonium.samplers.gibbs import Gibbs
from harmonium.typing import Batch

ROWS, STEPS, SWEEPS, TURNS = 10, 5, 10, 400


def fit_seconds(sizes: list[int], rows: np.ndarray, members: int, updates: int) -> float:
    """CPU seconds of one run."""
    rule = hm.PCD(steps=STEPS, chains=ROWS, inference="mean-field", inference_sweeps=SWEEPS)
    start = time.process_time()
    machine = hm.DBM(sizes[0], sizes[1:], seed=0)
    hm.fit(machine, rows, rule, updates=updates, batch_size=ROWS, members=members, learning_rate=0.05)
    return time.process_time() - start


def bare_loops(sizes: list[int], members: int) -> dict[str, Callable[[], object]]:
    """The parts of an update, each `TURNS` times in one compiled call."""
    generator = np.random.default_rng(0)
    machines = [hm.DBM(sizes[0], sizes[1:], seed=seed, weight_scale=0.3) for seed in range(members)]
    stacked = hm.Ensemble.of(machines).stacked
    layers = tuple(
        jnp.asarray(generator.integers(0, 2, (members, ROWS, size)), jnp.float32) for size in sizes
    )
    words = jnp.asarray(generator.integers(0, 2**32, (members, 2), dtype=np.uint32))

    def sweeps(machines, layers, words):
        def one(machine, layers, words, turn):
            return Gibbs(STEPS).swept(Noise.of(words).at(turn * STEPS), machine, layers, STEPS)

        def turn(number, layers):
            return jax.vmap(one, (0, 0, 0, None))(machines, layers, words, number)

        return jax.lax.fori_loop(0, TURNS, turn, layers)

    def means(machines, layers):
        def one(machine, rows):
            return MeanField(SWEEPS).solve(machine, Batch(x=rows)).means

        def turn(_, rows):
            # What comes out decides what goes in next, or the loop would be empty.
            found = jax.vmap(one)(machines, rows)
            return jnp.where(found[1][:, :, :1] > 2, 1 - rows, rows)

        return jax.lax.fori_loop(0, TURNS, turn, layers[0])

    few = gibbs._FEW_DRAWS

    def one_by_one(machines, layers, words):
        gibbs._FEW_DRAWS = 0  # read while the loop is traced
        try:
            return sweeps(machines, layers, words)
        finally:
            gibbs._FEW_DRAWS = few

    at_once, single, mean_field = map(compile_function, (sweeps, one_by_one, means))
    return {
        "sweeps": lambda: jax.block_until_ready(at_once(stacked, layers, words)),
        "sweeps, one by one": lambda: jax.block_until_ready(single(stacked, layers, words)),
        "mean field": lambda: jax.block_until_ready(mean_field(stacked, layers)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--members", type=int, default=50)
    parser.add_argument("--sizes", default="24,12,10")
    parser.add_argument("--updates", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    rows = np.random.default_rng(0).integers(0, 2, (1000, sizes[0]), dtype=np.uint8)
    shorter, longer = options.updates // 2, options.updates
    for updates in (shorter, longer):
        fit_seconds(sizes, rows, options.members, updates)
    found = []
    for _ in range(options.rounds):
        apart = -fit_seconds(sizes, rows, options.members, shorter)
        apart += fit_seconds(sizes, rows, options.members, longer)
        found.append(apart / (longer - shorter) / options.members * 1e6)
    print(
        f"hm.fit: {statistics.median(found):.1f} microseconds of CPU per member-update, "
        f"{min(found):.1f} at least, over {options.rounds} rounds"
    )
    loops = bare_loops(sizes, options.members)
    racers = [Contestant(name, loop, TURNS * options.members) for name, loop in loops.items()]
    race(racers, options.rounds)
    print_table(f"{options.members} machines of {options.sizes}, each", racers, racers[0])


if __name__ == "__main__":
    main()
