"""Annealing: block Gibbs sampling whose temperature falls, then descent from the best state that was seen."""

from __future__ import annotations

from typing import ClassVar, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel, check_two_valued
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.cumulant import ends_of
from harmonium.errors import SettingError
from harmonium.modes.base import AbstractRestarts, check_searchable, count_units, random_starts
from harmonium.modes.descent import best_given, descend
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import is_number, whole_number
from harmonium.typing import Configuration, Words

_SWEEP_STREAM = 1
_LAST_SWEEPS = 10
_HOTTEST = 0.3
_COLDEST = 0.1


def _checked_chains(chains: SupportsIndex) -> int:
    return whole_number(chains, "annealing needs a whole number of chains, at least one", "pass e.g. 16")


def _checked_sweeps(sweeps: SupportsIndex) -> int:
    return whole_number(
        sweeps,
        "annealing needs a whole number of sweeps from 2 to 2^24",
        "pass e.g. 200",
        least=2,
        most=1 << 24,
    )


class Annealing(AbstractRestarts):
    r"""``chains`` chains of ``sweeps`` block Gibbs sweeps while the temperature falls geometrically.

    .. math:: T_t = T_0\, (T_1 / T_0)^{t / (n - 1)}, \qquad
        T_0 = 0.3 \max_i \sum_j |w_{ij}|, \quad T_1 = 0.1\, \mathrm{rms}(w)

    where :math:`w_{ij}` is the coupling of two units times the distances between their two values, so that a machine
    has one schedule however it is written. ``hottest`` and ``coldest`` replace the two ends, in nats. Of every chain
    the best state that it saw is kept, one side of it with the other at its best, and descends at the end.

    Raises `SettingError` for counts or temperatures out of range. Source: Kirkpatrick, Gelatt and Vecchi (1983), with
    block updates and best-seen tracking.

    >>> import numpy as np
    >>> from harmonium.energy.rbm import RBM
    >>> Annealing(4, 20).explore(np.zeros(2, np.uint32), RBM.from_arrays([[4.0]], [-1.0], [-2.0])).energy
    -1.0
    """

    chains: int = eqx.field(default=16, converter=_checked_chains)
    sweeps: int = eqx.field(default=200, converter=_checked_sweeps)
    hottest: float | None = None
    coldest: float | None = None

    traceable: ClassVar[bool] = True

    def __check_init__(self):
        for name, value in (("hottest", self.hottest), ("coldest", self.coldest)):
            if value is not None and (not is_number(value) or not 0 < value < np.inf):
                raise SettingError(
                    f"{name} is a temperature above 0, got {value!r}; leave it out for one of the model"
                )
        if self.hottest is not None and self.coldest is not None and self.hottest < self.coldest:
            raise SettingError(
                f"hottest must not lie below coldest, got {self.hottest} and {self.coldest}; exchange the two"
            )

    def check(self, model: AbstractEnergyModel) -> None:
        check_searchable(model)
        check_two_valued(model, "annealing")

    def ends(self, words: Words, model: AbstractEnergyModel) -> Configuration:
        noise = Noise.of(words)
        start = random_starts(noise, model, self.chains)
        betas = 1 / self.temperatures(model)
        noise = noise.stream(_SWEEP_STREAM)
        if isinstance(model, AbstractBipartite):
            best = _best_of_sides(model, noise, start, betas)
        else:
            best = _best_of_sweeps(model, noise, start, betas)
        return descend(model, best, _LAST_SWEEPS)

    def unit_updates(self, model: AbstractEnergyModel) -> float:
        return float(self.chains * (self.sweeps + _LAST_SWEEPS) * count_units(model))

    def temperatures(self, model: AbstractEnergyModel) -> Float[Array, " sweeps"]:
        """The temperature of every sweep, in nats."""
        coupling, _ = model.pairwise()
        low, high = ends_of(model.units)
        strength = jnp.abs(coupling) * ((high - low)[:, None] * (high - low)).astype(coupling.dtype)
        pairs = jnp.maximum(jnp.sum(strength > 0), 1)
        hottest = _HOTTEST * jnp.max(jnp.sum(strength, axis=1)) if self.hottest is None else self.hottest
        coldest = _COLDEST * jnp.sqrt(jnp.sum(strength**2) / pairs) if self.coldest is None else self.coldest
        # Of a machine without couplings any temperatures will do.
        coldest = jnp.maximum(jnp.asarray(coldest, coupling.dtype), jnp.finfo(coupling.dtype).tiny * 2**20)
        hottest = jnp.maximum(jnp.asarray(hottest, coupling.dtype), coldest)
        share = jnp.linspace(0, 1, self.sweeps, dtype=coupling.dtype)
        return jnp.exp(jnp.log(hottest) * (1 - share) + jnp.log(coldest) * share)


def _best_of_sides(
    model: AbstractBipartite, noise: Noise, start: Configuration, betas: Float[Array, " sweeps"]
) -> Configuration:
    """Of every chain the best state of the smaller side, with the other at its best given it.

    What the other side is at its best, and the energy then, follow from the fields that its draw needs anyhow.
    """
    sizes = [sum(model.units[index].size for index in side) for side in model.sides]
    kept = int(sizes[1] < sizes[0])
    other = 1 - kept

    def sweep(
        index: Array, carry: tuple[Configuration, Configuration, Array]
    ) -> tuple[Configuration, Configuration, Array]:
        layers, best, lowest = list(carry[0]), carry[1], carry[2]
        words = model.words_of_sides(noise.at(index), layers[0].shape[:-1])
        energy = sum(model.units[place].base_energy(layers[place]) for place in model.sides[kept])
        for side in (other, kept):
            first = 0
            for place in model.sides[side]:
                units = model.units[place]
                field = jnp.broadcast_to(model.field(place, tuple(layers)), layers[place].shape)
                if side == other:
                    energy = energy - jnp.sum(units.mode(field) * field, axis=-1)
                own = words[side][..., first : first + units.size]
                first += units.size
                layers[place] = jax.lax.optimization_barrier(units.sample(own, betas[index] * field))
            if side == other:
                better = (energy < lowest)[:, None]
                best = tuple(
                    jnp.where(better, layers[place], held)
                    for place, held in zip(model.sides[kept], best, strict=True)
                )
                lowest = jnp.minimum(lowest, energy)
        return tuple(layers), best, lowest

    held = tuple(start[place] for place in model.sides[kept])
    never = jnp.full(start[0].shape[:1], jnp.inf, start[0].dtype)
    layers, best, _ = jax.lax.fori_loop(0, len(betas), sweep, (start, held, never))
    found = list(layers)
    for place, layer in zip(model.sides[kept], best, strict=True):
        found[place] = layer
    return best_given(model, other, tuple(found))[0]


def _best_of_sweeps(
    model: AbstractEnergyModel, noise: Noise, start: Configuration, betas: Float[Array, " sweeps"]
) -> Configuration:
    """Of every chain the best state at the end of a sweep."""

    def sweep(
        index: Array, carry: tuple[Configuration, Configuration, Array]
    ) -> tuple[Configuration, Configuration, Array]:
        layers, best, lowest = carry
        layers = model.sweep(noise.at(index), layers, betas[index])
        energy = model.energy(layers)
        better = (energy < lowest)[:, None]
        best = tuple(jnp.where(better, layer, held) for layer, held in zip(layers, best, strict=True))
        return layers, best, jnp.minimum(lowest, energy)

    return jax.lax.fori_loop(0, len(betas), sweep, (start, start, model.energy(start)))[1]
