"""Peak memory of training, over what the process held with its data loaded and jax started.

python benchmarks/memory.py [--size 784x1024x500] [--rows 10000]
"""

from __future__ import annotations

import argparse
import resource

from protocol import one_core

one_core()

import jax
import jax.numpy as jnp
import numpy as np

import harmonium as hm


def resident() -> float:
    """MB that the process holds now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="784x1024x500", help="visible x hidden x batch")
    parser.add_argument("--rows", type=int, default=10_000)
    options = parser.parse_args()
    visible, hidden, batch = (int(part) for part in options.size.split("x"))
    rows = (np.random.default_rng(0).random((options.rows, visible)) < 0.3).astype(np.uint8)
    jax.block_until_ready(jnp.zeros(1) + 1)
    before = resident()
    hm.fit(
        hm.RBM(visible, hidden, seed=0),
        rows,
        hm.PCD(chains=batch),
        epochs=5,
        batch_size=batch,
        learning_rate=0.01,
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"training {options.size} on {options.rows} rows ({rows.nbytes / 1e6:.1f} MB)")
    print(f"before hm.fit {before:.0f} MB, peak {peak:.0f} MB: {peak - before:.0f} MB more")


if __name__ == "__main__":
    main()
