"""What a bracket is worth: coverage, width, error and verdict on machines with exact answers.

    python benchmarks/bracket_quality.py honest [--seeds 20] [--cases "random;memories"]
    python benchmarks/bracket_quality.py sabotaged

honest: twelve machines small enough to enumerate (random, trained, clustered, near-critical; restricted and general),
as many brackets of each as there are seeds, and annealing from the base rate (`hm.AIS`) at an equal number of sweeps.
Coverage of the 95 % intervals, their median width, errors of both, flags.

sabotaged: a mode that is missing from every chain, chains that do not move, chains at a wrong temperature, and too few
chains that carry the weight: every one must be flagged.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock

import equinox as eqx
import jax
import numpy as np

import harmonium as hm
from harmonium.data.modes import planted_machine
from harmonium.energy.couplings.graph import grid
from harmonium.evaluate import ladders
from harmonium.evaluate.likelihood import visible_rows
from harmonium.evaluate.starts import exact_draws
from harmonium.samplers.tempering import ParallelTempering

ROWS = 400

Case = tuple[Any, np.ndarray]
"""A machine and rows for it."""


def random_rbm(scale: float, visible: int, hidden: int, seed: int) -> Case:
    generator = np.random.default_rng(seed)
    weights = scale * generator.standard_normal((visible, hidden))
    model = hm.RBM.from_arrays(weights, generator.standard_normal(visible), generator.standard_normal(hidden))
    return model, own_rows(model)


def trained_rbm(data: str, hidden: int, updates: int) -> Case:
    dataset = hm.load_data(data)
    start = hm.RBM(dataset.width, hidden, seed=0)
    run = hm.fit(start, dataset, hm.PCD(chains=64), updates=updates, learning_rate=0.1, seed=0)
    return run.model, visible_rows(run.model, dataset, "train")


def clusters() -> Case:
    machine = planted_machine(clusters=8, visible=64)
    model = hm.RBM.from_arrays(machine.weights, machine.visible_bias, machine.hidden_bias)
    return model, own_rows(model)


def valleys(depth: float) -> Case:
    """All off, or all on with an energy ``depth`` nats lower, and a barrier between."""
    size = 10
    bias = np.full(size, -3.0)
    model = hm.RBM.from_arrays(np.full((size, size), (6.0 * size + depth) / size**2), bias, bias)
    return model, own_rows(model)


def ferromagnet() -> Case:
    """Two layers of spins at the coupling at which the infinite machine turns magnetic."""
    sizes = (40, 12)
    model = hm.RBM.from_arrays(
        np.full(sizes, 1 / np.sqrt(sizes[0] * sizes[1])),
        np.zeros(sizes[0]),
        np.zeros(sizes[1]),
        visible="spin",
        hidden="spin",
    )
    return model, own_rows(model)


def glass() -> Case:
    """Spins all coupled at random, colder than where the infinite machine freezes."""
    size = 14
    generator = np.random.default_rng(1)
    matrix = np.triu(1.5 * generator.standard_normal((size, size)) / np.sqrt(size), 1)
    model = hm.BoltzmannMachine.from_arrays(matrix + matrix.T, np.zeros(size), visible="spin")
    return model, own_rows(model)


def lattice() -> Case:
    """A square of spins at the coupling at which the infinite lattice turns magnetic."""
    pairs = grid(4, 4, periodic=True)
    matrix = np.zeros((16, 16))
    matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = 0.4407
    model = hm.BoltzmannMachine.from_arrays(matrix, np.zeros(16), pairs=pairs, visible="spin")
    return model, own_rows(model)


def trained_machine() -> Case:
    dataset = hm.load_data("bars-and-stripes:side=3")
    run = hm.fit(
        hm.BoltzmannMachine(9, 4, seed=0), dataset, hm.PCD(chains=64), updates=2000, learning_rate=0.1, seed=0
    )
    return run.model, visible_rows(run.model, dataset, "train")


def memories() -> Case:
    """Three patterns and their opposites as deep valleys of a machine of spins."""
    size = 15
    patterns = np.sign(np.random.default_rng(2).standard_normal((3, size)))
    matrix = 1.6 * patterns.T @ patterns / size
    np.fill_diagonal(matrix, 0)
    model = hm.BoltzmannMachine.from_arrays(matrix, np.full(size, 0.05), visible="spin")
    return model, own_rows(model)


def random_machine() -> Case:
    generator = np.random.default_rng(4)
    matrix = np.triu(generator.standard_normal((14, 14)), 1)
    model = hm.BoltzmannMachine.from_arrays(matrix + matrix.T, generator.standard_normal(14), 10)
    return model, own_rows(model)


CASES: dict[str, Callable[[], Case]] = {
    "random": lambda: random_rbm(0.5, 14, 9, 1),
    "random, strong": lambda: random_rbm(2.0, 30, 14, 2),
    "trained on bars": lambda: trained_rbm("bars-and-stripes:side=4", 10, 3000),
    "trained on clusters": lambda: trained_rbm("planted:clusters=4,visible=32,rows=2000", 8, 2000),
    "planted clusters": clusters,
    "two valleys": lambda: valleys(2.0),
    "critical ferromagnet": ferromagnet,
    "random machine": random_machine,
    "glass machine": glass,
    "critical lattice": lattice,
    "trained machine": trained_machine,
    "memories": memories,
}

EASY = (
    "random",
    "critical ferromagnet",
    "random machine",
    "critical lattice",
    "trained machine",
    "glass machine",
)


def own_rows(model: Any) -> np.ndarray:
    """Rows drawn exactly from a machine that can be enumerated."""
    units = model.units[0]
    if isinstance(model, hm.RBM):
        side = int(model.units[1].size < units.size)
        drawn = exact_draws(model, side, ROWS, 7)[0]
        if side == 0:
            return drawn.astype(np.int8)
        # The visible units given exact draws of the hidden ones are one exact draw more.
        empty = np.zeros((ROWS, units.size), np.float32)
        field = np.asarray(model.field(0, (empty, drawn)), np.float64)
        low, high = units.support
        on = np.random.default_rng(8).random(field.shape) < 1 / (1 + np.exp(-(high - low) * field))
        return np.where(on, high, low).astype(np.int8)
    coupling, bias = (np.asarray(part, np.float64) for part in model.pairwise())
    states = np.indices((2,) * len(bias)).reshape(len(bias), -1).T
    edges = np.cumsum([0, *(layer.size for layer in model.units)])
    values = np.concatenate(
        [
            layer.support[0] + (layer.support[1] - layer.support[0]) * states[:, start:stop]
            for layer, start, stop in zip(model.units, edges[:-1], edges[1:], strict=True)
        ],
        axis=1,
    )
    log_weight = values @ bias + np.sum(values @ coupling * values, axis=1) / 2
    weight = np.exp(log_weight - log_weight.max())
    chosen = np.random.default_rng(7).choice(len(weight), ROWS, p=weight / weight.sum())
    return values[chosen, : units.size].astype(np.int8)


@cache
def case_of(name: str) -> tuple[Any, np.ndarray, float]:
    """A machine, rows for it, and its exact log partition function."""
    model, rows = CASES[name]()
    return model, rows, hm.log_partition(model, "exact").value


def honest(seeds: int, names: list[str]) -> bool:
    """True when the intervals cover at least 92 % and the easy cases are flagged at most one time in ten."""
    covered, widths, flags, ratios = [], [], [], {}
    print(
        f"{'case':22s} {'exact':>9s} {'cover':>6s} {'width':>7s} {'rmse':>8s} {'AIS rmse':>9s} {'ratio':>6s} flags"
    )
    for name in names:
        model, rows, exact = case_of(name)
        found = [hm.log_partition(model, "bracket", rows, seed) for seed in range(seeds)]
        operations = found[0].cost["operations"]
        annealed = [
            hm.log_partition(model, "ais", rows, seed, operation_budget=operations).value
            for seed in range(seeds)
        ]
        hits = [one.low <= exact <= one.high for one in found]
        width = [one.high - one.low for one in found]
        rmse, other = (
            float(np.sqrt(np.mean((np.asarray(values) - exact) ** 2)))
            for values in ([one.value for one in found], annealed)
        )
        flagged = [one for one in found if not one.reliable]
        covered += hits
        widths += width
        flags += [name in EASY and not one.reliable for one in found]
        ratios[name] = (other, other / rmse)
        print(
            f"{name:22s} {exact:9.4f} {np.mean(hits):6.0%} {np.median(width):7.4f} {rmse:8.5f} {other:9.5f} "
            f"{other / rmse:6.1f} {len(flagged)} of {seeds}",
            flush=True,
        )
        for one in flagged[:3]:
            print(f"    {one.reason[:150]}")
    hard = sorted(ratios.values(), reverse=True)[: max(1, len(ratios) // 2)]
    easy = len([name for name in names if name in EASY]) * seeds
    print(
        f"{len(covered)} intervals: coverage {np.mean(covered):.1%}, median width {np.median(widths):.4f}; AIS is "
        f"{np.median([ratio for _, ratio in hard]):.1f} times further off on its hard half (median; least "
        f"{min(ratio for _, ratio in hard):.1f}); {sum(flags)} of {easy} easy ones flagged"
    )
    return bool(np.mean(covered) >= 0.92 and sum(flags) <= 0.1 * easy)


@contextmanager
def wrong_ladders(how: Callable[[Any], Any]) -> Iterator[None]:
    """Ladders whose step is another one; what was compiled before is forgotten, and again after."""
    right = ParallelTempering.step_from
    try:
        with mock.patch.object(ParallelTempering, "step_from", how(right)):
            ladders._climb_program.cache_clear()
            jax.clear_caches()
            yield
    finally:
        ladders._climb_program.cache_clear()
        jax.clear_caches()


def frozen(right: Any) -> Any:
    """Replicas stay as they were; labels go on changing places."""

    def step(self: Any, base: Any, noise: Any, model: Any, state: Any) -> Any:
        after, info = right(self, base, noise, model, state)
        return eqx.tree_at(lambda tree: tree.replicas, after, state.replicas), info

    return step


def at_heat(heat: float) -> Callable[[Any], Any]:
    """All energies of the ladder's steps are multiplied by ``heat``."""

    def how(right: Any) -> Any:
        def step(self: Any, base: Any, noise: Any, model: Any, state: Any) -> Any:
            scaled = jax.tree.map(lambda leaf: heat * leaf, (base, model))
            return right(self, scaled[0], noise, scaled[1], state)

        return step

    return how


def sabotaged() -> bool:
    """True when every sabotage is flagged."""
    missed = 0

    def tell(what: str, estimate: Any, exact: float) -> None:
        nonlocal missed
        missed += estimate.reliable
        verdict = "flagged" if not estimate.reliable else "NOT FLAGGED"
        print(
            f"{what:45s} off by {estimate.value - exact:+9.4f}: {verdict}: {estimate.reason[:90]}", flush=True
        )

    for depth in (4.0, 6.0, 8.0, 10.0, 12.0):
        size = 16
        bias = np.full(size, -5.0)
        model = hm.RBM.from_arrays(np.full((size, size), (10.0 * size + depth) / size**2), bias, bias)
        exact = hm.log_partition(model, "exact").value
        rows = {"train": np.zeros((50, size), np.uint8), "test": np.ones((1, size), np.uint8)}
        # No chain starts in the deep valley, and none finds it; only the row that is scored lies there.
        estimate = hm.log_likelihood(model, rows, "bracket")
        true = hm.log_likelihood(model, rows, "exact").value
        tell(f"mode missing, {depth:g} nats deep", estimate, true)
    chosen = ("random, strong", "trained on bars", "planted clusters", "glass machine", "critical lattice")
    for name, how in (
        ("chains that stand still", frozen),
        ("at heat 0.9", at_heat(0.9)),
        ("at heat 1.1", at_heat(1.1)),
    ):
        with wrong_ladders(how):
            for case in chosen:
                model, rows, exact = case_of(case)
                tell(f"{name}, {case}", hm.log_partition(model, "bracket", rows), exact)
    few = hm.Bracket(rungs=2, sweeps=8, burn_in=0, base="uniform")
    for case in chosen:
        model, rows, exact = case_of(case)
        tell(f"two rungs, eight sweeps, {case}", hm.log_partition(model, few, rows), exact)
    print(f"{missed} not flagged")
    return missed == 0


def main() -> None:
    """Run one of the two; exit status 1 when a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("which", choices=("honest", "sabotaged"))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cases", default=";".join(CASES), help="names with ; between them")
    options = parser.parse_args()
    passed = honest(options.seeds, options.cases.split(";")) if options.which == "honest" else sabotaged()
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
