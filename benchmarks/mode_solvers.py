"""How often mode solvers find ground states, and at equal time against simulated annealing of ``dwave-samplers``.

``python benchmarks/mode_solvers.py table`` prints success and gap on sixteen random glasses of 24 by 20 units, whose
modes are proved. ``exact`` times proofs: 200 by 20 units and 28 by 28. ``race`` compares, on fifty glasses from 64 by
20 to 784 by 100 units, the energy that our annealing reaches with the one that ``SimulatedAnnealingSampler`` reaches
in the same processor time on one core; it needs ``pip install dimod dwave-samplers``. Times are of the processor.
"""

from __future__ import annotations

import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import harmonium as hm
from harmonium.modes.annealing import Annealing
from harmonium.modes.base import AbstractModeSolver
from harmonium.modes.descent import Descent
from harmonium.modes.exact import Exact
from harmonium.modes.memcomputing import Memcomputing
from harmonium.numerics.compile import compile_function

SIZES = ((64, 20), (128, 32), (256, 50), (512, 64), (784, 100))


def glass(visible: int, hidden: int, seed: int) -> hm.RBM:
    """Normal weights, and biases that make all fields zero where every unit is a half."""
    weights = np.random.default_rng(seed).normal(size=(visible, hidden)).astype(np.float32)
    return hm.RBM.from_arrays(weights, -weights.sum(axis=1) / 2, -weights.sum(axis=0) / 2)


def seconds_of(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    value = jax.block_until_ready(function())
    return time.process_time() - start, value


def table(seeds: int) -> None:
    glasses = [glass(24, 20, seed) for seed in range(16)]
    lowest = np.array([hm.modes.find(model, "exact").energy for model in glasses])
    stacked = hm.Ensemble.of(glasses).stacked
    words = np.array([[seed, 9] for seed in range(seeds)], np.uint32)
    print(f"{'solver':44}{'success':>9}{'mean gap':>11}{'worst':>9}{'ms':>8}")
    solvers: list[AbstractModeSolver] = [
        Descent(1),
        Descent(32),
        Descent(256),
        Annealing(4, 50),
        Annealing(4, 200),
        Annealing(),
        Memcomputing(4),
        Memcomputing(4, alpha=0.0),
        Memcomputing(),
    ]
    for solver in solvers:
        search = compile_function(jax.vmap(jax.vmap(solver.search, (0, None)), (None, 0)))
        energies = np.asarray(search(words, stacked)[1])
        gap = (energies - lowest[:, None]) / -lowest[:, None]
        one = compile_function(solver.search)
        jax.block_until_ready(one(words[0], glasses[0]))
        spent = min(seconds_of(lambda one=one: one(words[0], glasses[0]))[0] for _ in range(5))
        name = str(hm.modes.find(glasses[0], solver).solver).partition(", cap")[0]
        name += ", alpha=0" if getattr(solver, "alpha", 1.0) == 0.0 else ""
        print(f"{name:44}{np.mean(gap < 1e-6):9.3f}{gap.mean():11.5f}{gap.max():9.4f}{1e3 * spent:8.2f}")


def exact() -> None:
    words = np.zeros(2, np.uint32)
    for sizes, solver in (
        ((200, 20), Exact()),
        ((28, 28), Exact(bit_budget=28)),
        ((28, 28), Exact()),
        ((200, 28), Exact(bit_budget=28)),
    ):
        model = glass(*sizes, 3)
        first, found = seconds_of(lambda solver=solver, model=model: solver.explore(words, model))
        again = (
            seconds_of(lambda solver=solver, model=model: solver.explore(words, model))[0]
            if first < 20
            else first
        )
        proved = found.lower_bound is not None and found.energy - found.lower_bound < 1e-6
        print(
            f"{sizes} {solver}: {first:.2f} s, again {again:.2f} s, energy {found.energy:.4f}, proved {proved}"
        )


def race(instances: int, sweeps: int) -> None:
    import dimod
    from dwave.samplers import SimulatedAnnealingSampler

    solver = Annealing(sweeps=sweeps)
    search = compile_function(solver.search)
    theirs = SimulatedAnnealingSampler()
    score = {"ours lower": 0, "the same": 0, "theirs lower": 0}
    for number in range(instances):
        sizes = SIZES[number % len(SIZES)]
        model = glass(*sizes, 1000 + number)
        words = np.array([number, 5], np.uint32)
        jax.block_until_ready(search(words, model))
        spent, (_, energy) = seconds_of(lambda words=words, model=model: search(words, model))
        parameters = model.parameters()
        linear = np.concatenate([-parameters["visible_bias"], -parameters["hidden_bias"]]).astype(float)
        rows, columns = np.indices(sizes)
        problem = dimod.BinaryQuadraticModel.from_numpy_vectors(
            linear,
            (rows.ravel(), columns.ravel() + sizes[0], -parameters["weights"].astype(float).ravel()),
            0.0,
            dimod.BINARY,
        )
        # As many sweeps of a read as ours makes, and as many reads in one call as fill at least our time.
        reads, used, best = 0, 0.0, np.inf
        while used < spent:
            reads = max(reads + 1, int(np.ceil(reads * spent / used))) if used else 1
            used, found = seconds_of(
                lambda problem=problem, reads=reads, seed=number: theirs.sample(
                    problem, num_reads=reads, num_sweeps=sweeps, seed=seed
                )
            )
            best = float(found.first.energy)
        gap = (float(energy) - best) / abs(best)
        outcome = "the same" if abs(gap) < 1e-6 else "ours lower" if gap < 0 else "theirs lower"
        score[outcome] += 1
        print(
            f"{sizes!s:12} ours {float(energy):12.4f} in {1e3 * spent:7.1f} ms, theirs {best:12.4f} in "
            f"{1e3 * used:7.1f} ms ({reads} reads): {outcome}, {gap:+.5f}",
            flush=True,
        )
    print(score)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("table", "exact", "race"))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--instances", type=int, default=50)
    parser.add_argument("--sweeps", type=int, default=1000)
    arguments = parser.parse_args()
    if arguments.what == "table":
        table(arguments.seeds)
    elif arguments.what == "exact":
        exact()
    else:
        race(arguments.instances, arguments.sweeps)


if __name__ == "__main__":
    main()
