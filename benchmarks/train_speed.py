"""Cost of one PCD-1 update: the whole of ``hm.fit`` beside the bare compiled loop and scikit-learn's BernoulliRBM.

    python benchmarks/train_speed.py [--sizes 784x500x100 ...] [--rounds 7]

Times are microseconds of CPU per update, compilation excluded (every contestant runs once before the clock starts);
the whole of ``hm.fit`` includes checking the data, placing it, reports and the divergence guard.
"""

from __future__ import annotations

import argparse
import warnings

from protocol import Contestant, one_core, print_table, race, ratio

one_core()

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import BernoulliRBM

import harmonium as hm
from harmonium.numerics.compile import compile_function
from harmonium.numerics.logspace import logistic
from harmonium.numerics.random import Noise, uniform, update_words

ROWS = 2000
RATE = 0.01


def bare_loop(visible: int, hidden: int, batch: int, rows: jax.Array):
    """The update written by hand for one shape, without units, models, rules or optimisers: plain gradients."""

    def update(carry, step):
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
        weights = weights + scale * (positive.T @ data - negative.T @ fantasy)
        visible_bias = visible_bias + scale * jnp.sum(data - fantasy, axis=0)
        hidden_bias = hidden_bias + scale * jnp.sum(positive - negative, axis=0)
        return (weights, visible_bias, hidden_bias, chains), None

    return compile_function(lambda carry, order, words: jax.lax.scan(update, carry, (order, words))[0])


def contestants(visible: int, hidden: int, batch: int) -> list[Contestant]:
    """The three ways of making the same number of updates of one size."""
    generator = np.random.default_rng(0)
    rows = (generator.random((ROWS, visible)) < 0.3).astype(np.uint8)
    # A run of about three seconds each, in whole epochs.
    seconds_per_update = max(2e-5, 1e-10 * visible * hidden * batch)
    epochs = max(1, round(3 * batch / ROWS / seconds_per_update))
    updates = epochs * ROWS // batch
    model = hm.RBM(visible, hidden, seed=0)
    rule, plain = hm.PCD(chains=batch), hm.PCD(chains=batch, centred=False)

    def fit(rule):
        return lambda: hm.fit(model, rows, rule, updates=updates, batch_size=batch, learning_rate=RATE)

    loop = bare_loop(visible, hidden, batch, jnp.asarray(rows))
    order = jnp.asarray(np.resize(np.arange(ROWS, dtype=np.int32), (updates, batch)))
    words = update_words(jax.random.key(0), jnp.arange(updates))
    weights = 0.01 * jax.random.normal(jax.random.key(1), (hidden, visible))
    carry = (weights, jnp.zeros(visible), jnp.zeros(hidden), jnp.zeros((batch, hidden)))
    single = rows.astype(np.float32)

    def peer():
        machine = BernoulliRBM(hidden, learning_rate=RATE, batch_size=batch, n_iter=epochs, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(single)

    return [
        Contestant("hm.fit, whole call (centred)", fit(rule), updates),
        Contestant("hm.fit, whole call (plain)", fit(plain), updates),
        Contestant("bare compiled loop", lambda: jax.block_until_ready(loop(carry, order, words)), updates),
        Contestant("scikit-learn fit", peer, updates),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", default=["784x500x100"], help="visible x hidden x batch")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    for size in options.sizes:
        visible, hidden, batch = (int(part) for part in size.split("x"))
        racers = contestants(visible, hidden, batch)
        race(racers, options.rounds)
        ours, plain, bare, peer = racers
        print_table(f"one PCD-1 update, {visible} x {hidden}, batch {batch}", racers, ours)
        print(f"scikit-learn / hm.fit: {ratio(peer, ours):.2f} (centred), {ratio(peer, plain):.2f} (plain)")
        print(f"hm.fit / bare loop: {ratio(ours, bare):.3f} (centred), {ratio(plain, bare):.3f} (plain)")


if __name__ == "__main__":
    main()
