"""Cost of one PCD-1 update: the whole of ``hm.fit`` beside the bare compiled loop, its floor, and its peers.

    python benchmarks/train_speed.py [--sizes 784x10x5 784x128x100 784x500x100 784x1024x500] [--rounds 5]

Times are microseconds of CPU per update, compilation excluded (every contestant runs once before the clock starts);
the whole of ``hm.fit`` includes checking the data, placing it, reports and the divergence guard. Peers that are not
installed are left out: ``pip install '.[bench]'`` brings them.
"""

from __future__ import annotations

import argparse
from functools import partial

from protocol import Contestant, kernels, one_core, print_table, race, ratio

one_core()

import jax
import jax.numpy as jnp
import numpy as np
from floor import floor_ratio, fused_kernel, gemm_floor
from peers import RATE, peers

import harmonium as hm
from harmonium.numerics.compile import compile_function
from harmonium.numerics.logspace import logistic
from harmonium.numerics.random import Noise, uniform, update_words

ROWS = 2000
SIZES = ("784x10x5", "784x128x100", "784x500x100", "784x1024x500")


def bare_loop(visible: int, hidden: int, batch: int):
    """The update written by hand for one shape, without units, models, rules or optimisers: plain gradients."""

    def update(rows, carry, step):
        weights, visible_bias, hidden_bias, chains = carry
        order, words = step
        for_visible, for_hidden = Noise.of(words).pair((batch, max(visible, hidden)))
        data = rows[order].astype(jnp.float32)
        field = chains @ weights + visible_bias
        fantasy = (uniform(for_visible[:, :visible]) < logistic(field)).astype(jnp.float32)
        fantasy = jax.lax.optimization_barrier(fantasy)
        negative = logistic(fantasy @ weights.T + hidden_bias)
        chains = (uniform(for_hidden[:, :hidden]) < negative).astype(jnp.float32)
        chains = jax.lax.optimization_barrier(chains)
        positive = logistic(data @ weights.T + hidden_bias)
        scale = RATE / batch
        # Column sums as products: as reductions they cost XLA twice as much as all the rest of a small update.
        ones = jnp.ones(batch)
        weights = weights + scale * (positive.T @ data - negative.T @ fantasy)
        visible_bias = visible_bias + scale * (ones @ data - ones @ fantasy)
        hidden_bias = hidden_bias + scale * (ones @ positive - ones @ negative)
        return (weights, visible_bias, hidden_bias, chains), None

    def loop(rows, carry, order, words):
        return jax.lax.scan(partial(update, rows), carry, (order, words))[0]

    return compile_function(loop)


def bare_contestant(rows: np.ndarray, hidden: int, batch: int, updates: int) -> Contestant:
    """The bare loop over as many updates, in one compiled call."""
    visible = rows.shape[1]
    loop, placed = bare_loop(visible, hidden, batch), jnp.asarray(rows)
    order = jnp.asarray(np.resize(np.arange(len(rows), dtype=np.int32), (updates, batch)))
    words = update_words(jax.random.key(0), jnp.arange(updates))
    weights = 0.01 * jax.random.normal(jax.random.key(1), (hidden, visible))
    carry = (weights, jnp.zeros(visible), jnp.zeros(hidden), jnp.zeros((batch, hidden)))
    return Contestant(
        "bare compiled loop", lambda: jax.block_until_ready(loop(placed, carry, order, words)), updates
    )


def measure(visible: int, hidden: int, batch: int, rounds: int) -> None:
    """One table: all ways of making the same number of updates of one size."""
    rows = (np.random.default_rng(0).random((ROWS, visible)) < 0.3).astype(np.uint8)
    # Runs of about two seconds each and of three hundred updates at least, in whole epochs: what a run does once, such
    # as burning its chains in, is as much as twenty updates.
    per_epoch = ROWS // batch
    seconds = max(1.5e-5, 6e-11 * visible * hidden * batch)
    updates = per_epoch * max(-(-300 // per_epoch), round(2 / seconds / per_epoch))
    slow = max(20, updates // 16)
    model = hm.RBM(visible, hidden, seed=0)

    def fit(centred: bool) -> Contestant:
        rule = hm.PCD(chains=batch, centred=centred)
        name = f"hm.fit, whole call ({'centred' if centred else 'plain'})"
        return Contestant(
            name,
            lambda: hm.fit(model, rows, rule, updates=updates, batch_size=batch, learning_rate=RATE),
            updates,
        )

    ours, plain = fit(True), fit(False)
    bare = bare_contestant(rows, hidden, batch, updates)
    others = peers(rows, hidden, batch, updates, slow)
    kernel = fused_kernel(rows, hidden, batch, updates)
    parts = [] if kernel is not None else gemm_floor(visible, hidden, batch, max(100, updates // 8))
    racers = [ours, plain, bare, *others, *([] if kernel is None else [kernel]), *parts]
    race(racers, rounds)
    print_table(f"one PCD-1 update, {visible} x {hidden}, batch {batch}", racers, ours)
    for other in others:
        print(f"{other.name} / hm.fit: {ratio(other, ours):.2f} (centred), {ratio(other, plain):.2f} (plain)")
    print(f"hm.fit / bare loop: {ratio(ours, bare):.3f} (centred), {ratio(plain, bare):.3f} (plain)")
    for name, racer in (("bare loop", bare), ("hm.fit (plain)", plain), ("hm.fit (centred)", ours)):
        above = floor_ratio(racer, parts) if kernel is None else ratio(racer, kernel)
        print(f"{name} / {'floor' if kernel is None else kernel.name}: {above:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="visible x hidden x batch")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(kernels())
    for size in options.sizes:
        measure(*(int(part) for part in size.split("x")), options.rounds)


if __name__ == "__main__":
    main()
