"""Annealed importance sampling beside its own floor: the two matrix products of every temperature, and numpy.

    python benchmarks/ais_speed.py [--sizes 784x500] [--chains 100] [--temperatures 1000] [--rounds 5]

Times are microseconds of CPU per temperature, compilation excluded. The floor is the same number of the same two
products in one compiled loop, measured in the same rounds. numpy does what ours does, with its own random numbers in
single precision; rbms (``pip install '.[bench]'``) is raced where it is installed. Targets: at most 1.3 times the
floor, at least 2.8 times as fast as numpy and 7 times as fast as rbms.
"""

from __future__ import annotations

import argparse
from itertools import pairwise

from protocol import Contestant, one_core, print_table, race, ratio

one_core()

import jax
import jax.numpy as jnp
import numpy as np

import harmonium as hm
from harmonium.energy.independent import Independent
from harmonium.energy.path import Path
from harmonium.evaluate.annealing import anneal, walked_side
from harmonium.evaluate.base_rate import independent_draws
from harmonium.evaluate.schedule import linear_schedule
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_single


def products(visible: int, hidden: int, chains: int, temperatures: int):
    """The floor: two products per temperature, each needing the one before, so that none can be left out."""
    weights = jnp.asarray(np.random.default_rng(0).standard_normal((hidden, visible)), jnp.float32)

    def step(_, state):
        lower = state @ weights
        return (lower @ weights.T) * jnp.float32(1e-6)

    loop = compile_function(lambda state, weights: jax.lax.fori_loop(0, temperatures, step, state))
    state = jnp.ones((chains, hidden), jnp.float32)
    return lambda: jax.block_until_ready(loop(state, weights))


def ours(model: hm.RBM, chains: int, temperatures: int):
    """One forward walk, as `forward_log_partition` makes it."""
    base = as_single(Independent(model.units))
    path = as_single(Path(base, model))
    words = jax.random.bits(jax.random.key(0), (2,), jnp.uint32)
    start = independent_draws(base, chains, words)
    betas = linear_schedule(temperatures)
    return lambda: anneal(path, walked_side(model), betas, start, words)


def plain_numpy(model: hm.RBM, chains: int, temperatures: int):
    """The same walk in numpy: one product serves the weight and the draw, log-weights in double precision."""
    arrays = model.parameters()
    weights, lower_bias, upper_bias = (
        np.ascontiguousarray(arrays[name], np.float32) for name in ("weights", "visible_bias", "hidden_bias")
    )
    turned = np.ascontiguousarray(weights.T)
    betas = np.linspace(0, 1, temperatures + 1).astype(np.float32)

    def walk():
        generator = np.random.default_rng(0)
        hidden = (generator.random((chains, len(upper_bias)), np.float32) < 0.5).astype(np.float32)
        total = np.zeros(chains)
        for before, after in pairwise(betas):
            inner = hidden @ turned
            old, new = before * inner + lower_bias, after * inner + lower_bias
            total += np.logaddexp(0, new).sum(axis=1) - np.logaddexp(0, old).sum(axis=1)
            visible = (generator.random(new.shape, np.float32) < 1 / (1 + np.exp(-new))).astype(np.float32)
            field = after * (visible @ weights) + upper_bias
            hidden = (generator.random(field.shape, np.float32) < 1 / (1 + np.exp(-field))).astype(np.float32)
        return total

    return walk


def peer(model: hm.RBM, chains: int, temperatures: int):
    """The same walk by rbms, on torch; None where they are not installed."""
    try:
        import torch
        from rbms.bernoulli_bernoulli.classes import BBRBM
        from rbms.partition_function.ais import compute_partition_function_ais
    except ImportError as error:
        print(f"rbms is left out ({error}); pip install '.[bench]'")
        return None
    torch.set_num_threads(1)
    arrays = model.parameters()
    weights, lower_bias, upper_bias = (
        torch.from_numpy(np.array(arrays[name], np.float32))
        for name in ("weights", "visible_bias", "hidden_bias")
    )
    machine = BBRBM(weight_matrix=weights, vbias=lower_bias, hbias=upper_bias)
    return lambda: compute_partition_function_ais(chains, temperatures + 1, machine)


def contestants(visible: int, hidden: int, chains: int, temperatures: int) -> list[Contestant]:
    """Ours first, then the floor, then the others."""
    model = hm.RBM(visible, hidden, seed=0, weight_scale=0.02)
    racers = [
        Contestant("harmonium", ours(model, chains, temperatures), temperatures),
        Contestant("its two products alone", products(visible, hidden, chains, temperatures), temperatures),
        Contestant("numpy", plain_numpy(model, chains, temperatures), temperatures),
    ]
    if (walk := peer(model, chains, temperatures)) is not None:
        racers.append(Contestant("rbms", walk, temperatures))
    return racers


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", default=["784x500"], help="visible x hidden")
    parser.add_argument("--chains", type=int, default=100)
    parser.add_argument("--temperatures", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for size in options.sizes:
        visible, hidden = (int(part) for part in size.split("x"))
        racers = contestants(visible, hidden, options.chains, options.temperatures)
        race(racers, options.rounds)
        mine, floor, *others = racers
        print_table(
            f"one temperature of {options.chains} chains, {visible} x {hidden}, {options.temperatures} temperatures",
            racers,
            mine,
        )
        print(f"harmonium / its two products: {ratio(mine, floor):.3f} (target: at most 1.3)")
        for other in others:
            print(f"{other.name} / harmonium: {ratio(other, mine):.2f}")


if __name__ == "__main__":
    main()
