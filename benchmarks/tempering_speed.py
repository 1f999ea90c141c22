"""What tempering costs beyond the sweeps of its replicas.

    python benchmarks/tempering_speed.py [--sizes 784x128:10x100 ...] [--steps 100] [--rounds 7]

``VISIBLExHIDDEN:RUNGSxCHAINS``. Against a plain block Gibbs sweep over as many rows: parallel tempering from a uniform
base and from one at the marginals of data, CAST 1:(RUNGS - 1) of a hundred levels, which has as many rows, with and
without learning, and, for the choice that was made, the same ladder with swaps by free energies of visible rows at the
two temperatures.
"""

from __future__ import annotations

import argparse
from typing import Any

from protocol import Contestant, one_core, print_table, race, ratio

one_core()

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import harmonium as hm
from harmonium.energy.path import Path
from harmonium.numerics.compile import compile_function
from harmonium.numerics.random import Noise
from harmonium.samplers.base import AbstractSampler
from harmonium.samplers.gibbs import Gibbs
from harmonium.samplers.ladder import exchanged, pairs_in_turn, swap_pairs

MOST = 1.07
"""Swaps may cost 7 % of a sweep."""


class FreeEnergySwaps(AbstractSampler):
    """Parallel tempering whose swaps go by the free energies of visible rows at the two temperatures."""

    sampler: hm.ParallelTempering

    def init(self, words: Any, model: Any, particles: Any) -> Any:
        return self.sampler.init(words, model, particles)

    def step(self, noise: Any, model: Any, state: Any) -> Any:
        base = self.sampler.base_at(model, state)
        shape = state.holder.shape
        place = jnp.argsort(state.holder, axis=0)
        path = Path(base, model, state.betas[place].reshape(-1))
        rows = path.sweep(noise.at(0), state.replicas)
        last = len(state.betas) - 1
        here, down, up = (
            jnp.take_along_axis(
                path.at(state.betas[jnp.clip(place + move, 0, last)].reshape(-1))
                .marginal_energy(0, rows[:1])
                .reshape(shape),
                state.holder,
                axis=0,
            )
            for move in (0, 1, -1)
        )
        log_ratio = here[:-1] + here[1:] - down[:-1] - up[1:]
        coins, turns = noise.stream(99).pair(log_ratio.shape)
        swaps = swap_pairs(coins, log_ratio, pairs_in_turn("even-odd", state.rounds, turns))
        after = eqx.tree_at(
            lambda tree: (tree.replicas, tree.holder, tree.rounds, tree.traffic),
            state,
            (
                rows,
                exchanged(state.holder, swaps.source),
                state.rounds + 1,
                state.traffic.after(swaps),
            ),
        )
        return after, {}

    def unit_updates(self, model: Any, state: Any) -> int:
        return self.sampler.unit_updates(model, state)


class Learning(AbstractSampler):
    """A sampler that learns after each of its steps, as in training."""

    sampler: hm.CAST

    def init(self, words: Any, model: Any, particles: Any) -> Any:
        return self.sampler.init(words, model, particles)

    def step(self, noise: Any, model: Any, state: Any) -> Any:
        after, info = self.sampler.step(noise, model, state)
        return self.sampler.adapt(after, info), info

    def unit_updates(self, model: Any, state: Any) -> int:
        return self.sampler.unit_updates(model, state)


def contestant(name: str, sampler: AbstractSampler, model: Any, rows: int, steps: int) -> Contestant:
    """So many steps of a sampler in one compiled call."""
    noise = Noise.from_key(jax.random.key(0))
    generator = np.random.default_rng(0)
    particles = tuple(
        jnp.asarray(generator.integers(0, 2, (rows, units.size)), jnp.float32) for units in model.units
    )
    state = sampler.init(noise.words, model, particles)

    def run(noise: Any, model: Any, state: Any) -> Any:
        return jax.lax.fori_loop(0, steps, lambda i, now: sampler.step(noise.fold(i), model, now)[0], state)

    program = compile_function(run)
    return Contestant(name, lambda: jax.block_until_ready(program(noise, model, state)), steps)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", default=["784x128:10x100", "784x500:10x100", "784x10:10x5"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    for text in options.sizes:
        sizes, _, shape = text.partition(":")
        visible, hidden = (int(part) for part in sizes.split("x"))
        rungs, chains = (int(part) for part in shape.split("x"))
        model = jax.tree.map(jnp.asarray, hm.RBM(visible, hidden, seed=0, weight_scale=0.1))
        steps = max(options.steps, 200_000_000 // (rungs * chains * visible * hidden * 4))
        plain = contestant("plain sweep", Gibbs(), model, rungs * chains, steps)
        others = [
            contestant(
                "tempering, uniform", hm.ParallelTempering(rungs, base="uniform"), model, chains, steps
            ),
            contestant("tempering, data", hm.ParallelTempering(rungs), model, chains, steps),
            contestant("cast, data", hm.CAST(rungs - 1), model, chains, steps),
            contestant("cast, data, learning", Learning(hm.CAST(rungs - 1)), model, chains, steps),
            contestant(
                "by free energies", FreeEnergySwaps(hm.ParallelTempering(rungs)), model, chains, steps
            ),
        ]
        racers = [plain, *others]
        race(racers, options.rounds)
        print_table(f"{visible} x {hidden}, {rungs} rungs of {chains} chains, one step", racers, plain)
        for other in others:
            verdict = "" if "free" in other.name else ("within" if ratio(other, plain) <= MOST else "BEYOND")
            print(f"{other.name}: {ratio(other, plain):.3f} of the plain sweep {verdict}", flush=True)


if __name__ == "__main__":
    main()
