"""A machine of two-valued units as a sum of absolute values over the spins of one part of its units."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.cumulant import Split, ends_of
from harmonium.numerics.enumerate import all_states
from harmonium.typing import Configuration

Numbers = Array | np.ndarray

_EPSILONS = 8.0


class SpinForm(NamedTuple):
    r"""Minus the energy of a machine in spins :math:`s` of the split's enumerated units and :math:`u` of the others.

    .. math:: -E = c + h^\top s + \tfrac12 s^\top K s + (g + J s)^\top u, \qquad
        \max_u -E = c + h^\top s + \tfrac12 s^\top K s + \sum_k |g_k + (J s)_k|

    ``between`` is :math:`J` (others by enumerated), ``within`` is :math:`K`, ``field`` is :math:`h`, ``other_field`` is
    :math:`g` and ``constant`` is :math:`c`, in nats. No two of the others are coupled; ``within`` is None where no
    two of the spins are either. A unit of the values ``l`` and
    ``u`` is ``(l + u)/2`` and ``(u - l)/2`` times its spin.
    """

    between: Float[Numbers, "others spins"]
    within: Float[Numbers, "spins spins"] | None
    field: Float[Numbers, " spins"]
    other_field: Float[Numbers, " others"]
    constant: Float[Numbers, ""]


def spin_form(model: AbstractEnergyModel, split: Split) -> SpinForm:
    """The machine in spins, in its own dtype; traceable."""
    coupling, bias = model.pairwise()
    low, high = (values.astype(coupling.dtype) for values in ends_of(model.units))
    middle, half = (low + high) / 2, (high - low) / 2
    shift = coupling @ middle
    field = half * (bias + shift)
    matrix = half[:, None] * coupling * half
    spins, others = np.array(split.enumerated, np.intp), np.array(split.summed, np.intp)
    return SpinForm(
        between=matrix[np.ix_(others, spins)],
        within=None if isinstance(model, AbstractBipartite) else matrix[np.ix_(spins, spins)],
        field=field[spins],
        other_field=field[others],
        constant=middle @ (bias + shift / 2),
    )


def rounding_of(form: SpinForm) -> Float[Array, ""]:
    """By how much sums of a form, in the dtype of its arrays, are off at most: some epsilons of all terms together."""
    within = () if form.within is None else (form.within,)
    parts = (form.between, form.field, form.other_field, form.constant, *within)
    return (
        _EPSILONS * jnp.finfo(form.field.dtype).eps * jnp.stack([jnp.abs(part).sum() for part in parts]).sum()
    )


def others_given(form: SpinForm, spins: Float[Numbers, "*batch spins"]) -> Float[Numbers, "*batch others"]:
    """The best spins of the others; a tie falls to -1."""
    return jnp.where(spins @ form.between.T + form.other_field > 0, 1, -1).astype(spins.dtype)


def layers_of(
    model: AbstractEnergyModel,
    split: Split,
    spins: Float[Numbers, "*batch spins"],
    others: Float[Numbers, "*batch others"],
) -> Configuration:
    """The configuration of spins: units in their own order and values."""
    order = np.argsort(np.concatenate([split.enumerated, split.summed]).astype(np.intp))
    signs = jnp.concatenate([jnp.asarray(spins), jnp.asarray(others)], axis=-1)[..., order]
    low, high = (values.astype(signs.dtype) for values in ends_of(model.units))
    edges = np.cumsum([units.size for units in model.units])[:-1]
    return tuple(jnp.split(jnp.where(signs > 0, high, low), edges, axis=-1))


def all_spins(count: int) -> Float[np.ndarray, "states count"]:
    """All states of a few spins, one row each, unit ``i`` up where bit ``i`` of the row's number is set."""
    return 2.0 * all_states(count) - 1.0
