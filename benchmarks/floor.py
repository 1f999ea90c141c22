"""The least that an update can cost on this core, measured in the same run as what is compared with it.

The floor of an update is the sum of its matrix products, each at the speed that XLA reaches for that very shape, of its
draws (noise, logistic function, comparison) and of its logistic functions. For small machines, bound by memory
and calls rather than products, the floor is a kernel of C with every loop fused by hand.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from protocol import Contestant

from harmonium.numerics.compile import compile_function
from harmonium.numerics.logspace import logistic
from harmonium.numerics.random import Noise, uniform


def gemm_floor(visible: int, hidden: int, batch: int, repeats: int) -> list[Contestant]:
    """The parts of one update, each ``repeats`` times in a compiled loop; their times add up to the floor.

    Every product takes a result of the one before into its input, so that no compiler can lift it out of the loop.
    """
    key = jax.random.key(0)
    weights = 0.01 * jax.random.normal(key, (hidden, visible))
    rows = jnp.ones((batch, visible), jnp.float32)
    codes = jnp.full((batch, hidden), 0.5, jnp.float32)

    def loop(body):
        return compile_function(lambda start: jax.lax.fori_loop(0, repeats, body, start))

    def down(_, codes):  # visible fields of the chains
        return codes.at[0, 0].add(1e-9 * (codes @ weights)[0, 0])

    def up(_, rows):  # hidden fields of the data and of the chains
        return rows.at[0, 0].add(1e-9 * (rows @ weights.T)[0, 0])

    def outer(_, codes):  # statistics of either phase
        return codes.at[0, 0].add(1e-9 * (codes.T @ rows)[0, 0])

    def draw(index, total):
        one, other = Noise.of(jnp.uint32([1, 2])).at(index).pair((batch, max(visible, hidden)))
        field = total + jnp.zeros((batch, visible))
        first = jnp.sum(uniform(one[:, :visible]) < logistic(field))
        second = jnp.sum(uniform(other[:, :hidden]) < logistic(field[:, :1] + jnp.zeros((batch, hidden))))
        return total + 1e-9 * (first + second)

    def activate(_, total):
        return total + 1e-9 * jnp.sum(logistic(total + jnp.arange(batch * hidden, dtype=jnp.float32)))

    parts = [
        ("product, chains down", loop(down), codes, 1),
        ("product, up (two of them)", loop(up), rows, 2),
        ("product, statistics (two of them)", loop(outer), codes, 2),
        ("draws", loop(draw), jnp.float32(0), 1),
        ("logistic functions of the data", loop(activate), jnp.float32(0), 1),
    ]
    # Twice as many of a part count as two of its units: a unit is one update.
    return [
        Contestant(
            name, lambda program=program, start=start: jax.block_until_ready(program(start)), repeats / times
        )
        for name, program, start, times in parts
    ]


def floor_ratio(whole: Contestant, parts: list[Contestant]) -> float:
    """Median over rounds of the time of an update over the sum of its parts."""
    sums = np.sum([part.cpu for part in parts], axis=0)
    return float(np.median(np.array(whole.cpu) / sums))


def fused_kernel(rows: np.ndarray, hidden: int, batch: int, updates: int) -> Contestant | None:
    """The hand-fused loop of floor.c; None where there is no compiler or the machine is too large for it."""
    visible = rows.shape[1]
    compiler = shutil.which("gcc")
    if compiler is None or visible > 1024 or hidden > 64 or batch > 16:
        return None
    folder = tempfile.mkdtemp()
    library = Path(folder) / "floor.so"
    source = Path(__file__).with_name("floor.c")
    subprocess.run(
        [compiler, "-Ofast", "-march=native", "-shared", "-fPIC", str(source), "-o", str(library)], check=True
    )
    train = ctypes.CDLL(str(library)).train
    generator = np.random.default_rng(0)
    shown = np.ascontiguousarray(rows[: len(rows) // batch * batch])

    def pointer(array: np.ndarray) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    def run() -> None:
        weights = 0.01 * generator.standard_normal((hidden, visible), np.float32)
        biases = np.zeros(visible, np.float32), np.zeros(hidden, np.float32)
        chains = np.zeros((batch, hidden), np.float32)
        noise = [generator.integers(1, 2**32, (batch, size), dtype=np.uint32) for size in (visible, hidden)]
        train(
            *map(pointer, (weights, *biases, chains, shown)),
            len(shown) // batch,
            *map(pointer, noise),
            visible,
            hidden,
            batch,
            updates,
            ctypes.c_float(0.01),
        )

    return Contestant("C, fused by hand", run, updates)
