"""The ground state with its proof: by enumeration of the smaller side, and by branch and bound beyond."""

from __future__ import annotations

from functools import cache
from typing import ClassVar, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel, check_two_valued
from harmonium.energy.cumulant import Split
from harmonium.modes.base import AGREEMENT, AbstractModeSolver, Findings, check_searchable, exact_energies
from harmonium.modes.branch_and_bound import branch_and_bound
from harmonium.modes.descent import Descent
from harmonium.modes.spins import SpinForm, all_spins, layers_of, others_given, rounding_of, spin_form
from harmonium.numerics.best_pair import best_pair
from harmonium.numerics.compile import compile_function
from harmonium.numerics.enumerate import check_bits
from harmonium.numerics.precision import as_double, in_double_precision
from harmonium.numerics.whole import whole_number
from harmonium.typing import Configuration, Words

QUICK_BITS = 20
"""Most units whose enumeration takes no time to speak of: within a compiled loop, and before anything else is tried."""

MOST_BITS = 36
"""Most units whose enumeration anybody could wait for."""

_STARTS = Descent(256, 20)


def _checked_budget(bits: SupportsIndex) -> int:
    fault = f"an exact search enumerates a whole number of units from 1 to {MOST_BITS}"
    return whole_number(bits, fault, "pass e.g. bit_budget=28", most=MOST_BITS)


def _checked_nodes(nodes: SupportsIndex) -> int:
    return whole_number(
        nodes, "branch and bound needs a whole number of nodes, at least one", "pass e.g. 1000000"
    )


class Exact(AbstractModeSolver):
    r"""The state of lowest energy and the proof that it is: no other solver claims that.

    Of a machine whose units fall into two parts, the best state of one part given the other is known, so that only
    the smaller one is searched:

    .. math:: \min_{x, y} E(x, y) = \min_x \Big[ E_x(x) - \sum_k \max_{y_k} y_k f_k(x) \Big].

    Up to 20 units all states are enumerated, as pairs of two half-codes, at three operations per state and unit of the
    other part. Beyond, branch and bound fixes one unit after the other and drops what cannot be better than the best
    state known. If it has not ended after ``nodes`` bounds, up to ``bit_budget`` units are enumerated after all; of
    more, what is reported is how far down the ground state may still lie.

    Within a compiled program, :meth:`search`, it enumerates in the model's own dtype, up to 20 units. :meth:`explore`
    works in double precision, and what it proves is true to its rounding: where terms so large cancel that the rounding
    counts beside the energy, the bound lies below the energy by as much and nothing is proved.

    Raises `SettingError` for budgets out of range. Source: the ground state by the sums that give an exact ``log Z``,
    with a maximum in the place of each log-sum.

    >>> import numpy as np
    >>> from harmonium.energy.rbm import RBM
    >>> found = Exact().explore(np.zeros(2, np.uint32), RBM.from_arrays([[4.0]], [-1.0], [-2.0]))
    >>> found.energy, found.lower_bound
    (-1.0, -1.0)
    """

    bit_budget: int = eqx.field(default=28, converter=_checked_budget)
    nodes: int = eqx.field(default=100_000, converter=_checked_nodes)

    traceable: ClassVar[bool] = True

    def check(self, model: AbstractEnergyModel) -> None:
        _check_exact(model)
        check_bits(
            model.split(held=False).bits,
            min(self.bit_budget, QUICK_BITS),
            f"an exact search for the mode of this {type(model).__name__} within a compiled program",
            "use descent or annealing, which prove nothing",
        )

    def search(self, words: Words, model: AbstractEnergyModel) -> tuple[Configuration, Float[Array, ""]]:
        split = model.split(held=False)
        spins = best_spins(spin_form(model, split))
        configuration = layers_of(model, split, spins, others_given(spin_form(model, split), spins))
        return configuration, model.energy(configuration)

    def explore(self, words: Words, model: AbstractEnergyModel) -> Findings:
        _check_exact(model)
        split = model.split(held=False)
        if split.bits > min(self.bit_budget, QUICK_BITS):
            found = self._bounded(words, model, split)
            if split.bits > self.bit_budget or found.energy == found.lower_bound:
                return found
        state, rounding = _enumerated(model, split)
        energy = float(exact_energies(model, state))
        bound = _claimed(energy, energy - 2 * rounding)
        return Findings(state, energy, bound, 1, 1, 2.0**split.bits * (split.bits + len(split.summed)))

    def _bounded(self, words: Words, model: AbstractEnergyModel, split: Split) -> Findings:
        start = _STARTS.explore(words, model)
        state, bound, nodes = _searched(model, split, start.energy, self.nodes)
        best = start.configuration if state is None else state
        energy = float(exact_energies(model, best))
        return Findings(
            best, energy, _claimed(energy, bound), 1, 1, float(nodes * split.bits) + start.unit_updates
        )


def _claimed(energy: float, bound: float) -> float:
    """The bound of a search that ended is the energy itself, but for a rounding too small to speak of."""
    return energy if energy - bound <= AGREEMENT * max(1.0, abs(energy)) else bound


def best_spins(form: SpinForm) -> Float[Array, " spins"]:
    """The spins of the enumerated units in the state of lowest energy, by enumeration."""
    count = form.field.shape[0]
    half = count // 2
    halves = [jnp.asarray(all_spins(part), form.field.dtype) for part in (half, count - half)]
    values, forms, rest = [], [], form.other_field
    for spins, units in zip(halves, (slice(0, half), slice(half, count)), strict=True):
        own = spins @ form.field[units]
        if form.within is not None:
            own = own + jnp.sum(spins @ form.within[units, units] * spins, axis=1) / 2
        values.append(own)
        forms.append(spins @ form.between[:, units].T + rest)
        rest = jnp.zeros_like(form.other_field)
    tied = None if form.within is None else (halves[0] @ form.within[:half, half:], halves[1])
    _, one, other = best_pair(values[0], forms[0], values[1], forms[1], tied)
    return jnp.concatenate([halves[0][one], halves[1][other]])


def _check_exact(model: AbstractEnergyModel) -> None:
    check_searchable(model)
    check_two_valued(model, "an exact search")


@in_double_precision
def _enumerated(model: AbstractEnergyModel, split: Split) -> tuple[tuple[np.ndarray, ...], float]:
    """The best of all states, and the rounding of the sums that it was the best by."""
    layers, rounding = _program()(as_double(model), split)
    return tuple(np.asarray(layer) for layer in layers), float(rounding)


@in_double_precision
def _searched(
    model: AbstractEnergyModel, split: Split, known: float, nodes: int
) -> tuple[tuple[np.ndarray, ...] | None, float, int]:
    """A state below the known energy or None, a lower bound of all energies, and how many bounds were taken."""
    form: SpinForm = jax.tree.map(np.asarray, _form_program()(as_double(model), split))
    spins, most, count = branch_and_bound(form, -known, nodes)
    # A node whose bound is no more than a rounding above the best is dropped, and that bound is as much off.
    bound = -most - 2 * float(rounding_of(form))
    if spins is None:
        return None, bound, count
    layers = _layers_program()(model, split, form, spins)
    return tuple(np.asarray(layer) for layer in layers), bound, count


@cache
def _form_program():
    return compile_function(spin_form, static_argnums=(1,))


@cache
def _layers_program():
    return compile_function(
        lambda model, split, form, spins: layers_of(model, split, spins, others_given(form, spins)),
        static_argnums=(1,),
    )


@cache
def _program():
    return compile_function(_best_layers, static_argnums=(1,))


def _best_layers(model: AbstractEnergyModel, split: Split) -> tuple[Configuration, Array]:
    form = spin_form(jax.tree.map(jnp.asarray, model), split)
    spins = best_spins(form)
    return layers_of(model, split, spins, others_given(form, spins)), jnp.asarray(rounding_of(form))
