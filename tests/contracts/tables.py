"""Exact laws of small machines and kernels, written down state by state, and how sure a comparison with them is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
import scipy.stats

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.boltzmann import BoltzmannMachine
from harmonium.energy.machine_path import MachinePath
from harmonium.typing import Clamp
from harmonium.units.base import AbstractUnits
from harmonium.units.categorical import Categorical

FALSE_ALARM = 1e-5
"""Chance that a proof fails although everything is right."""

POWER = 0.99
"""Least chance with which a proof must catch the mistake of its sabotaged twin."""

LEAST_EXPECTED = 5.0
"""Least expected count of a cell, so that Pearson's statistic follows its law."""


@dataclass(frozen=True)
class Table:
    """Every configuration of a model, one row each, with its energy in float64."""

    layers: tuple[np.ndarray, ...]
    supports: tuple[tuple[float, ...], ...]
    sides: tuple[tuple[int, ...], ...]
    energy: np.ndarray
    blocks: tuple[tuple[int, ...], ...]
    """Units that one sweep draws at once, in its order, numbered through all layers."""

    @classmethod
    def of(cls, model: AbstractEnergyModel) -> Table:
        sizes = [units.size for units in model.units]
        supports = tuple(units.support for units in model.units)
        values = [support for support, size in zip(supports, sizes, strict=True) for _ in range(size)]
        places = np.indices([len(support) for support in values]).reshape(len(values), -1)
        columns = np.stack(
            [np.asarray(support)[place] for support, place in zip(values, places, strict=True)], axis=1
        )
        layers = tuple(np.split(columns, np.cumsum(sizes)[:-1], axis=1))
        allowed = np.logical_and.reduce([_can_be(*pair) for pair in zip(model.units, layers, strict=True)])
        layers = tuple(layer[allowed] for layer in layers)
        with jax.enable_x64(True):
            energy = np.asarray(model.energy(layers))
        assert energy.dtype == np.float64
        sides = getattr(model, "sides", ())
        edges = np.cumsum([0, *sizes])
        if sides:
            blocks = [[unit for i in side for unit in range(edges[i], edges[i + 1])] for side in sides]
        else:
            machine = model.model if isinstance(model, MachinePath) else model
            assert isinstance(machine, BoltzmannMachine)
            blocks = [group for layer in range(len(sizes)) for group in machine.groups(layer)]
        assert sorted(unit for block in blocks for unit in block) == list(range(edges[-1]))
        return cls(layers, supports, sides, energy, tuple(map(tuple, blocks)))

    @property
    def count(self) -> int:
        """How many configurations there are."""
        return len(self.energy)

    @cached_property
    def digits(self) -> np.ndarray:
        """Per configuration and unit, the place of its value in the unit's support."""
        return self._digits(self.layers)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(layer.shape[1] for layer in self.layers)

    def law(self, beta: float = 1.0) -> np.ndarray:
        """Probability of every configuration at an inverse temperature."""
        return normalised(-beta * self.energy)

    def log_partition(self) -> float:
        return float(np.logaddexp.reduce(-self.energy))

    def codes(self, configuration: Sequence[np.ndarray | jax.Array]) -> np.ndarray:
        """Which configuration each row is."""
        layers = [np.asarray(layer) for layer in configuration]
        for layer, support in zip(layers, self.supports, strict=True):
            assert np.isin(layer, support).all(), "a unit has a value that is none of its kind"
        numbers = self._digits(layers) @ self._radix
        places = np.minimum(np.searchsorted(self._numbers, numbers), self.count - 1)
        assert (self._numbers[places] == numbers).all(), "a variable of a softmax layer is not in one state"
        return places

    def counts(self, configuration: Sequence[np.ndarray | jax.Array]) -> np.ndarray:
        return np.bincount(self.codes(configuration), minlength=self.count)

    def draw(self, chains: int, law: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
        """Independent configurations of a law over the table, in float32."""
        chosen = np.random.default_rng(seed).choice(self.count, chains, p=law)
        return tuple(layer[chosen].astype(np.float32) for layer in self.layers)

    def groups(self, layers: Sequence[int]) -> np.ndarray:
        """A number per configuration, equal where these layers are equal."""
        columns = np.concatenate([np.full(size, i in layers) for i, size in enumerate(self.sizes)])
        return self._labels(columns)

    def marginal(self, layer: int, law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """States of one layer, one row each, and the probability of each."""
        groups = self.groups([layer])
        _, first = np.unique(groups, return_index=True)
        return self.layers[layer][first], np.bincount(groups, weights=law)

    def block_kernel(
        self,
        drawn: Sequence[int],
        energy: np.ndarray | None = None,
        beta: float = 1.0,
        clamp: Clamp | None = None,
    ) -> np.ndarray:
        """The kernel that draws some layers exactly given everything else, held units included."""
        columns = np.concatenate([np.full(size, i in drawn) for i, size in enumerate(self.sizes)])
        return self.unit_kernel(np.flatnonzero(columns), energy, beta, clamp)

    def unit_kernel(
        self,
        drawn: Sequence[int] | np.ndarray,
        energy: np.ndarray | None = None,
        beta: float = 1.0,
        clamp: Clamp | None = None,
    ) -> np.ndarray:
        """The kernel that draws some units exactly given everything else, held units included."""
        held = [False if clamp is None or clamp[i] is None else clamp[i] for i in range(len(self.sizes))]
        held = [np.broadcast_to(np.asarray(part), size) for part, size in zip(held, self.sizes, strict=True)]
        free = np.isin(np.arange(sum(self.sizes)), drawn) & ~np.concatenate(held)
        groups = self._labels(~free)
        weight = np.exp(-beta * (self.energy if energy is None else energy))
        total = np.bincount(groups, weights=weight)[groups]
        return np.where(groups[:, None] == groups[None, :], (weight / total)[None, :], 0.0)

    def sweep_kernel(
        self, energy: np.ndarray | None = None, beta: float = 1.0, clamp: Clamp | None = None
    ) -> np.ndarray:
        """The kernel of one sweep: block after block."""
        kernel = np.eye(self.count)
        for block in self.blocks:
            kernel = kernel @ self.unit_kernel(block, energy, beta, clamp)
        return kernel

    def _digits(self, layers: Sequence[np.ndarray]) -> np.ndarray:
        places = [
            np.searchsorted(support, layer) for layer, support in zip(layers, self.supports, strict=True)
        ]
        return np.concatenate(places, axis=-1)

    @cached_property
    def _numbers(self) -> np.ndarray:
        """The number of every configuration among all that there were if every unit were free."""
        return self.digits @ self._radix

    @cached_property
    def _radix(self) -> np.ndarray:
        bases = [
            len(support) for support, size in zip(self.supports, self.sizes, strict=True) for _ in range(size)
        ]
        return np.cumprod([1, *bases[:0:-1]])[::-1]

    def _labels(self, columns: np.ndarray) -> np.ndarray:
        return np.unique(self.digits[:, columns] @ self._radix[columns], return_inverse=True)[1]


def _can_be(units: AbstractUnits, layer: np.ndarray) -> np.ndarray:
    """Which rows a layer can be in: of softmax units those with one of every block."""
    if not isinstance(units, Categorical):
        return np.ones(len(layer), bool)
    return (layer.reshape(len(layer), -1, units.states).sum(axis=-1) == 1).all(axis=1)


def visible_kernel(table: Table) -> np.ndarray:
    """One sweep of an RBM seen on the visible layer alone: hidden given visible, then visible given hidden."""
    kernel = table.block_kernel(table.sides[1]) @ table.block_kernel(table.sides[0])
    groups = table.groups([0])
    _, first = np.unique(groups, return_index=True)
    return np.stack([np.bincount(groups, weights=row) for row in kernel[first]])


def normalised(log_weight: np.ndarray) -> np.ndarray:
    weight = np.exp(log_weight - log_weight.max())
    return weight / weight.sum()


def cells(law: np.ndarray, chains: int) -> np.ndarray:
    """A cell per possible state; states too rare for Pearson's statistic share one, filled up with the next rarest."""
    order = np.argsort(law, kind="stable")
    order = order[law[order] > 0]
    expected = chains * law[order]
    rare = int((expected < LEAST_EXPECTED).sum())
    while 0 < rare < len(order) and expected[:rare].sum() < LEAST_EXPECTED:
        rare += 1
    cell = np.full(len(law), -1)
    cell[order] = np.maximum(np.arange(len(order)) - rare + 1, 0) if rare else np.arange(len(order))
    return cell


def agreement(counts: np.ndarray, law: np.ndarray) -> float:
    """Pearson's p-value of counts of independent draws against their exact law."""
    chains = int(counts.sum())
    cell = cells(law, chains)
    possible = cell >= 0
    if counts[~possible].sum() > 0:
        return 0.0
    expected = chains * np.bincount(cell[possible], weights=law[possible])
    found = np.bincount(cell[possible], weights=counts[possible])
    assert len(found) > 1, "everything fell into one cell: a check that cannot fail"
    return float(scipy.stats.chisquare(found, expected * (chains / expected.sum())).pvalue)


def power_against(mistaken: np.ndarray, law: np.ndarray, chains: int) -> float:
    """Chance that `agreement` falls below the false alarm rate for chains of a mistaken law.

    By the non-central chi-squared law, to which Pearson's statistic tends for small mistakes.
    """
    cell = cells(law, chains)
    possible = cell >= 0
    escaped = float(mistaken[~possible].sum())
    if escaped > 1e-9:
        return float(-np.expm1(chains * np.log1p(-min(escaped, 1 - 1e-9))))
    right = np.bincount(cell[possible], weights=law[possible])
    wrong = np.bincount(cell[possible], weights=mistaken[possible])
    shift = chains * float(((wrong - right) ** 2 / right).sum())
    freedom = len(right) - 1
    return float(scipy.stats.ncx2.sf(scipy.stats.chi2.isf(FALSE_ALARM, freedom), freedom, shift))


def largest_deviation(found: np.ndarray, expected: np.ndarray, stderr: np.ndarray) -> float:
    """The largest distance in standard errors; entries that cannot vary must agree to rounding."""
    fixed = stderr < 1e-12
    np.testing.assert_allclose(found[fixed], expected[fixed], atol=1e-9)
    return float(np.max(np.abs(found - expected)[~fixed] / stderr[~fixed]))


def deviation_limit(count: int) -> float:
    """The bound that the largest of ``count`` normal deviations passes with the false alarm rate, by Bonferroni."""
    return float(scipy.stats.norm.isf(FALSE_ALARM / (2 * count)))


def deviation_power(mistaken: np.ndarray, expected: np.ndarray, stderr: np.ndarray) -> float:
    """Least chance that `largest_deviation` passes its limit when the true means are mistaken."""
    moving = stderr >= 1e-12
    shift = np.max(np.abs(mistaken - expected)[moving] / stderr[moving])
    return float(scipy.stats.norm.sf(deviation_limit(int(moving.sum())) - shift))
