"""Cost of an exact partition function: ``hm.log_partition`` beside numpy and the plain chunked sum.

    python benchmarks/exact_speed.py [--visible 784] [--hidden 20] [--rounds 5]

All contestants sum over the states of the hidden layer in float64; times are seconds of CPU on one core, compilation
excluded. numpy enumerates in blocks that fit into the cache; the plain sum is what harmonium falls back to where
fields are too large for products of exponentials.
"""

from __future__ import annotations

import argparse

from protocol import Contestant, kernels, one_core, print_table, race, ratio

one_core()

import jax
import numpy as np

import harmonium as hm
from harmonium.evaluate.exact import log_partition_program
from harmonium.numerics.precision import as_double


def numpy_sum(weights: np.ndarray, visible_bias: np.ndarray, hidden_bias: np.ndarray) -> float:
    """``log Z`` as a good user of numpy would write it."""
    hidden = len(hidden_bias)
    places = np.arange(hidden)
    total = -np.inf
    for start in range(0, 1 << hidden, 1 << 10):
        states = (np.arange(start, min(start + (1 << 10), 1 << hidden))[:, None] >> places & 1).astype(float)
        field = states @ weights.T + visible_bias
        positive = np.maximum(field, 0)
        np.abs(field, out=field)
        np.negative(field, out=field)
        np.exp(field, out=field)
        np.log1p(field, out=field)
        logs = states @ hidden_bias + (positive + field).sum(axis=1)
        total = np.logaddexp(total, np.logaddexp.reduce(logs))
    return float(total)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--visible", type=int, default=784)
    parser.add_argument("--hidden", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    generator = np.random.default_rng(0)
    arrays = {
        "weights": 0.1 * generator.standard_normal((options.visible, options.hidden)),
        "visible_bias": generator.standard_normal(options.visible),
        "hidden_bias": generator.standard_normal(options.hidden),
    }
    model = hm.RBM.from_arrays(**arrays)
    found: dict[str, float] = {}

    def ours() -> None:
        found["harmonium"] = hm.log_partition(model, method="exact").value

    def theirs() -> None:
        found["numpy"] = numpy_sum(**arrays)

    def plain() -> None:
        with jax.enable_x64(True):
            found["plain"] = float(log_partition_program()(as_double(model), 1))

    racers = [
        Contestant("hm.log_partition", ours, 1),
        Contestant("numpy", theirs, 1),
        Contestant("plain chunked sum", plain, 1),
    ]
    print(kernels())
    race(racers, options.rounds)
    print_table(f"log Z over 2**{options.hidden} states x {options.visible}", racers, racers[0])
    print(f"numpy / hm.log_partition: {ratio(racers[1], racers[0]):.1f}")
    print(
        f"largest difference of the three: {max(found.values()) - min(found.values()):.1e} nats of {found['numpy']:.6f}"
    )


if __name__ == "__main__":
    main()
