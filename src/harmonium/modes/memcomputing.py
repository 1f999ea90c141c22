"""Memcomputing: the mode as a weighted satisfiability problem, solved by differential equations with memory."""

from __future__ import annotations

from typing import ClassVar, NamedTuple, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel, check_two_valued
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.cumulant import Split
from harmonium.errors import SettingError
from harmonium.modes.base import AbstractRestarts, check_searchable, count_units
from harmonium.modes.descent import descend
from harmonium.modes.spins import SpinForm, layers_of, spin_form
from harmonium.numerics.random import Noise, uniform
from harmonium.numerics.whole import is_number, whole_number
from harmonium.typing import Configuration, Words

_EPSILON = 1e-3
_LARGEST_MOVE = 0.5
_SHORTEST_STEP = 2.0**-10
_LAST_SWEEPS = 10


def _checked_starts(starts: SupportsIndex) -> int:
    return whole_number(starts, "memcomputing needs a whole number of starts, at least one", "pass e.g. 8")


def _checked_steps(steps: SupportsIndex) -> int:
    return whole_number(steps, "memcomputing needs a whole number of steps, at least one", "pass e.g. 200")


class Memcomputing(AbstractRestarts):
    r"""Spins that relax to values in [-1, 1] and move until clauses with a memory are satisfied.

    Every coupling :math:`J` of two spins becomes the two clauses that a satisfied coupling fulfils both, of weight
    :math:`2 |J|`, and every field a clause of one literal. With literals :math:`q_i = \pm 1` a clause ``m`` is violated
    by :math:`C_m = \frac12 \min_i (1 - q_i v_i)`, and

    .. math:: \dot v_i = \sum_m w_m \big[ x^l_m x^s_m\, G_{mi} + (1 + \zeta x^l_m)(1 - x^s_m)\, R_{mi} \big], \quad
        \dot x^s_m = \beta (x^s_m + \epsilon)(C_m - \gamma), \quad \dot x^l_m = \alpha (C_m - \delta)

    with :math:`G_{mi} = \frac12 q_i (1 - q_j v_j)`, ``j`` the other literal, and :math:`R_{mi} = \frac12 (q_i - v_i)`
    for the literal that decides :math:`C_m`; of two that are as far off one is taken, which changes nothing that could
    be measured. The short memory :math:`x^s` lies in [0, 1] and the long one :math:`x^l` in [1, ``cap``].
    ``steps`` Euler steps are taken from ``starts`` random states, as long as no spin moves
    by more than a half; after each the signs are read, descend by one sweep, and the best state is kept. ``alpha=0``
    takes the long memory away, with which the solver is clearly worse.

    Raises `SettingError` for numbers out of range. Source: Bearden, Pei and Di Ventra (2020) for the equations, whose
    clauses have no weights: those are ours, as is the map of each coupling to two clauses. Their constants (``cap``
    10^4 times the clauses, :math:`\delta` 0.05, :math:`\zeta` 0.1) are for problems in which all clauses can be
    satisfied; here some never can, their memory grows without end and freezes the rest at a wrong state.

    >>> import numpy as np
    >>> from harmonium.energy.rbm import RBM
    >>> Memcomputing().explore(np.zeros(2, np.uint32), RBM.from_arrays([[4.0]], [-1.0], [-2.0])).energy
    -1.0
    """

    starts: int = eqx.field(default=8, converter=_checked_starts)
    steps: int = eqx.field(default=200, converter=_checked_steps)
    cap: float = 3.0
    alpha: float = 5.0
    beta: float = 20.0
    gamma: float = 0.25
    delta: float = 0.1
    zeta: float = 1.0

    traceable: ClassVar[bool] = True

    def __check_init__(self):
        for name in ("alpha", "beta", "gamma", "delta", "zeta"):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value < np.inf:
                raise SettingError(
                    f"{name} must be a number of at least 0, got {value!r}; leave it at its default"
                )
        if not is_number(self.cap) or not 1 <= self.cap < np.inf:
            raise SettingError(f"cap must be a number of at least 1, got {self.cap!r}; pass e.g. 3")

    def check(self, model: AbstractEnergyModel) -> None:
        check_searchable(model)
        check_two_valued(model, "memcomputing")

    def ends(self, words: Words, model: AbstractEnergyModel) -> Configuration:
        split = _split_of(model)
        form = spin_form(model, split)
        circuit = _circuit_of(form)
        noise = Noise.of(words)
        count = len(split.enumerated), len(split.summed)
        drawn = [
            2 * uniform(noise.at(place).pair((self.starts, size))[0], form.field.dtype) - 1
            for place, size in enumerate(count)
        ]
        shape = (self.starts, *circuit.couplings.shape)
        state = _State(
            spins=drawn[0],
            others=drawn[1],
            short=tuple(jnp.full(shape, 0.5, form.field.dtype) for _ in range(2)),
            long=tuple(jnp.ones(shape, form.field.dtype) for _ in range(2)),
            unit_long=tuple(jnp.ones_like(values) for values in drawn),
        )

        def step(_: Array, carry: tuple[_State, Configuration, Array]) -> tuple[_State, Configuration, Array]:
            state, best, lowest = carry
            state = self._moved(circuit, state)
            read = descend(model, layers_of(model, split, state.spins, state.others), 1)
            energy = model.energy(read)
            better = (energy < lowest)[:, None]
            best = tuple(jnp.where(better, layer, held) for layer, held in zip(read, best, strict=True))
            return state, best, jnp.minimum(lowest, energy)

        start = layers_of(model, split, state.spins, state.others)
        best = jax.lax.fori_loop(0, self.steps, step, (state, start, model.energy(start)))[1]
        return descend(model, best, _LAST_SWEEPS)

    def unit_updates(self, model: AbstractEnergyModel) -> float:
        return float(self.starts * (2 * self.steps + _LAST_SWEEPS) * count_units(model))

    def _moved(self, circuit: _Circuit, state: _State) -> _State:
        """One Euler step."""
        # Per coupling: the first spin, and the second one turned to the sign of the coupling.
        first = (state.spins if circuit.alone else state.others)[:, :, None]
        second = state.spins[:, None, :] * circuit.signs
        push_first, push_second, short, long, violation = 0.0, 0.0, [], [], []
        for turn, fast, slow in zip((-1.0, 1.0), state.short, state.long, strict=True):
            # The literals of the clause are `turn` of the first and `-turn` of the second: 1 minus literal times value.
            one, other = 1 - turn * first, 1 + turn * second
            violated = jnp.minimum(one, other) / 2
            gradient = slow * fast
            rigid = (1 + self.zeta * slow) * (1 - fast)
            decides = one <= other
            push_first += turn * (gradient * other + jnp.where(decides, rigid * one, 0)) / 2
            push_second -= turn * (gradient * one + jnp.where(decides, 0, rigid * other)) / 2
            violation.append(violated)
        push_second = push_second * circuit.signs
        to_first = jnp.sum(push_first * circuit.couplings, axis=2)
        to_second = jnp.sum(push_second * circuit.couplings, axis=1)
        values = state.spins, state.others
        forces = (
            [to_first + to_second, jnp.zeros_like(state.others)] if circuit.alone else [to_second, to_first]
        )
        missing = [signs - value for signs, value in zip(circuit.unit_signs, values, strict=True)]
        forces = [
            force + weight * slow * lack / 2
            for force, weight, slow, lack in zip(
                forces, circuit.unit_weights, state.unit_long, missing, strict=True
            )
        ]
        largest = jnp.maximum(*(jnp.max(jnp.abs(force), axis=1, initial=0) for force in forces))
        time = jnp.clip(_LARGEST_MOVE / jnp.maximum(largest, _SHORTEST_STEP), _SHORTEST_STEP, 1.0)
        wide, flat = time[:, None, None], time[:, None]
        for violated, fast, slow in zip(violation, state.short, state.long, strict=True):
            change = self.beta * (fast + _EPSILON) * (violated - self.gamma)
            short.append(jnp.clip(fast + wide * change, 0, 1))
            long.append(jnp.clip(slow + wide * self.alpha * (violated - self.delta), 1, self.cap))
        unit_long = [
            jnp.clip(slow + flat * self.alpha * (jnp.abs(lack) / 2 - self.delta), 1, self.cap)
            for slow, lack in zip(state.unit_long, missing, strict=True)
        ]
        moved = [jnp.clip(value + flat * force, -1, 1) for value, force in zip(values, forces, strict=True)]
        return _State(moved[0], moved[1], tuple(short), tuple(long), tuple(unit_long))


class _State(NamedTuple):
    """Where the equations are: spins, the two memories of both clauses of every coupling, the one of the fields."""

    spins: Float[Array, "starts spins"]
    others: Float[Array, "starts others"]
    short: tuple[Array, ...]
    long: tuple[Array, ...]
    unit_long: tuple[Array, ...]


class _Circuit(NamedTuple):
    """Weights and signs of the clauses; ``alone`` where all units are of one population, each pair once."""

    couplings: Float[Array, "first second"]
    signs: Float[Array, "first second"]
    unit_weights: tuple[Array, Array]
    unit_signs: tuple[Array, Array]
    alone: bool


def _split_of(model: AbstractEnergyModel) -> Split:
    """The two sides of a machine that has such, and all units as one population of any other."""
    if isinstance(model, AbstractBipartite):
        return model.split(held=False)
    return Split(tuple(range(count_units(model))), ())


def _circuit_of(form: SpinForm) -> _Circuit:
    alone = form.within is not None
    matrix = jnp.triu(form.within) if form.within is not None else form.between
    weights = 2 * jnp.abs(matrix)
    fields = jnp.asarray(form.field), jnp.asarray(form.other_field)
    # In units of the force upon a spin, so that one set of constants serves all machines.
    by_node = [jnp.sum(weights**2, axis=0), jnp.sum(weights**2, axis=1)]
    nodes = by_node[0] + by_node[1] if alone else jnp.concatenate(by_node)
    unit = jnp.mean(jnp.sqrt(nodes))
    unit = jnp.where(unit > 0, unit, 1)
    return _Circuit(
        couplings=weights / unit,
        signs=jnp.where(matrix < 0, -1, 1).astype(matrix.dtype),
        unit_weights=(2 * jnp.abs(fields[0]) / unit, 2 * jnp.abs(fields[1]) / unit),
        unit_signs=(jnp.sign(fields[0]), jnp.sign(fields[1])),
        alone=alone,
    )
