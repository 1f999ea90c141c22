"""Units that are 0 and 1 written as spins, and the other way round, with nothing lost: parameters and moments."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.couplings.dense import Dense
from harmonium.energy.couplings.pairs import Pairs
from harmonium.energy.quadratic import quadratic_of
from harmonium.errors import SettingError
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.kinds import UNIT_KINDS
from harmonium.units.spin import Spin


class Rewritten(NamedTuple):
    """A machine in another convention, and the constant by which its energies are lower; see `to_spin`."""

    model: AbstractEnergyModel
    offset: float


def to_spin(model: AbstractEnergyModel) -> Rewritten:
    r"""The same machine with units that are -1 or +1 (:math:`x = (1 + s)/2`), and the constant left over.

    .. math:: E(x) = E'(2x - 1) + e_0, \qquad W' = W/4, \qquad b'_i = \frac{b_i}{2} + \frac14 \sum_j C_{ij}

    for units that are 0 or 1 throughout; layers of spins stay as they are. ``e_0`` is the ``offset``, in nats, so that
    log partition functions are ``log Z = log Z' - offset``. Arrays are float64 whatever they were.

    **Returns** the ``model``, of the class of the given one, and the ``offset``. **Raises** `SettingError` for units
    that are not two-valued and for a stack.

    >>> from harmonium.energy.rbm import RBM
    >>> spins, offset = to_spin(RBM.from_arrays([[4.0]], [0.0], [0.0]))
    >>> spins.parameters()["weights"].tolist(), offset
    ([[1.0]], -1.0)
    """
    return _rewritten(model, Spin.kind)


def to_binary(model: AbstractEnergyModel) -> Rewritten:
    """The same machine with units that are 0 or 1, and the constant left over: the inverse of `to_spin`.

    >>> from harmonium.energy.rbm import RBM
    >>> rbm = RBM.from_arrays([[1.0]], [1.0], [1.0], visible="spin", hidden="spin")
    >>> bits, offset = to_binary(rbm)
    >>> bits.parameters()["weights"].tolist(), bits.parameters()["visible_bias"].tolist(), offset
    ([[4.0]], [0.0], 1.0)
    """
    return _rewritten(model, Bernoulli.kind)


def moments_to_spin(
    means: Float[np.ndarray, " n"], second: Float[np.ndarray, "n n"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n n"]]:
    r"""Means and second moments of units that are 0 or 1, as those of spins :math:`s = 2x - 1`.

    :math:`\mathrm{E}[s_i s_j] = 4\,\mathrm{E}[x_i x_j] - 2\,\mathrm{E}[x_i] - 2\,\mathrm{E}[x_j] + 1`. Raises
    `SettingError` for moments that no units of those values have, such as those of spins.

    >>> moments_to_spin(np.array([0.5, 1.0]), np.array([[0.5, 0.5], [0.5, 1.0]]))[1].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    _check_moments(means, second, np.diag(second) - means, "0 or 1", "moments_to_binary")
    rows = means[:, None] + means[None, :]
    return 2 * means - 1, 4 * second - 2 * rows + 1


def moments_to_binary(
    means: Float[np.ndarray, " n"], second: Float[np.ndarray, "n n"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n n"]]:
    """Means and second moments of spins as those of units that are 0 or 1: the inverse of `moments_to_spin`.

    >>> moments_to_binary(np.array([0.0, 1.0]), np.array([[1.0, 0.0], [0.0, 1.0]]))[1].tolist()
    [[0.5, 0.5], [0.5, 1.0]]
    """
    _check_moments(means, second, np.diag(second) - 1, "-1 or +1", "moments_to_spin")
    rows = means[:, None] + means[None, :]
    return (1 + means) / 2, (second + rows + 1) / 4


def _check_moments(means: np.ndarray, second: np.ndarray, zero: np.ndarray, values: str, other: str) -> None:
    """The square of a unit that is 0 or 1 is the unit, that of a spin is 1: what tells the two apart."""
    if np.any(np.abs(zero) > 1e-6):
        unit = int(np.argmax(np.abs(zero)))
        raise SettingError(
            f"unit {unit} has the mean {means[unit]:.6g} and the mean square {second[unit, unit]:.6g}, which no unit "
            f"that is {values} has; use {other} for moments of the other convention"
        )


def _rewritten(model: AbstractEnergyModel, kind: str) -> Rewritten:
    before = quadratic_of(model)
    after = before.written_in(UNIT_KINDS[kind].support)
    edges = np.cumsum([units.size for units in model.units])[:-1]
    units = tuple(UNIT_KINDS[kind](bias=bias) for bias in np.split(0.0 - after.linear, edges))
    couplings: list[eqx.Module] = []
    start = 0
    for coupling in model.couplings:
        if isinstance(coupling, Dense):
            upper, lower = coupling.kernel.shape
            block = -after.strengths[start : start + lower * upper].reshape(lower, upper)
            couplings.append(Dense(np.ascontiguousarray(block.T)))  # pyright: ignore[reportArgumentType]
            start += lower * upper
        elif isinstance(coupling, Pairs):
            couplings.append(eqx.tree_at(lambda tree: tree.strengths, coupling, -after.strengths))
        else:
            couplings.append(coupling)
    changed = eqx.tree_at(lambda tree: (tree.units, tree.couplings), model, (units, tuple(couplings)))
    return Rewritten(changed, after.offset)
