"""Machines as binary quadratic models, and the other way round, with every constant."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.boltzmann import BoltzmannMachine
from harmonium.energy.quadratic import Quadratic, quadratic_of
from harmonium.energy.variables import VALUES, checked_vartype, is_visible, own_vartype, variable_names
from harmonium.errors import DataError, MissingExtraError, SettingError
from harmonium.numerics.whole import is_number, is_whole
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.spin import Spin

_KINDS = {"BINARY": Bernoulli.kind, "SPIN": Spin.kind}


class FromBQM(NamedTuple):
    """What a binary quadratic model is as a machine; see `from_bqm`."""

    model: BoltzmannMachine
    offset: float
    names: tuple[Hashable, ...]


def to_bqm(
    model: AbstractEnergyModel,
    vartype: str | None = None,
    names: Sequence[Hashable] | None = None,
    *,
    offset: float = 0.0,
) -> Any:
    """The energy of a machine as a ``dimod.BinaryQuadraticModel``, in nats and in double precision.

    ``bqm.energy(sample)`` is ``model.energy(configuration) + offset`` for every state, whichever two values the
    variables take: with ``vartype`` "BINARY" they are 0 and 1, with "SPIN" -1 and +1, and None is what the units
    are (BINARY where only some are spins). That changes no state, only how it is written: 0 as -1, and 1 as +1.

    ``names`` are those of the variables, visible units first; left out, they are ``v0, v1, ...`` for visible units and
    ``h1_0, h1_1, ..., h2_0, ...`` for hidden ones, layer by layer, so that layers can be told from them. Every pair
    that the machine may couple is there, those of strength zero included.

    **Raises** `SettingError` for a model that is no machine of two-valued units and for names that are not as many as
    the units, `MissingExtraError` where dimod is not installed.

    >>> from harmonium.energy.rbm import RBM
    >>> bqm = to_bqm(RBM.from_arrays([[4.0]], [0.0], [0.0]), "SPIN")
    >>> float(bqm.linear["v0"]), float(bqm.quadratic["v0", "h1_0"]), float(bqm.offset)
    (-1.0, -1.0, -1.0)
    """
    written, kind, given = _written(model, vartype, names, offset)
    try:
        from dimod import BinaryQuadraticModel
    except ImportError:
        raise MissingExtraError(
            "a binary quadratic model needs dimod, which is not installed; pip install 'harmonium[anneal]'"
        ) from None
    first, second = written.pairs.T
    bqm = BinaryQuadraticModel(kind)
    for name, linear in zip(given, written.linear.tolist(), strict=True):
        bqm.add_linear(name, linear)
    bqm.add_quadratic_from(
        zip(
            (given[unit] for unit in first.tolist()),
            (given[unit] for unit in second.tolist()),
            written.strengths.tolist(),
            strict=True,
        )
    )
    bqm.offset = written.offset
    return bqm


def to_qubo(
    model: AbstractEnergyModel, names: Sequence[Hashable] | None = None, *, offset: float = 0.0
) -> tuple[dict[tuple[Hashable, Hashable], float], float]:
    r"""The energy of a machine as a QUBO: a dictionary over pairs of names, and the offset that goes with it.

    :math:`E = \sum_{ij} Q_{ij} x_i x_j + e_0` in nats for units written as 0 and 1, biases at ``(name, name)``. It
    needs no dimod. **Raises** as `to_bqm`.

    >>> from harmonium.energy.rbm import RBM
    >>> to_qubo(RBM.from_arrays([[1.0]], [1.0], [1.0], visible="spin", hidden="spin"))
    ({('v0', 'v0'): 0.0, ('h1_0', 'h1_0'): 0.0, ('v0', 'h1_0'): -4.0}, 1.0)
    """
    written, _, given = _written(model, "BINARY", names, offset)
    own = {(name, name): value for name, value in zip(given, written.linear.tolist(), strict=True)}
    return own | _quadratic(written, given), written.offset


def to_ising(
    model: AbstractEnergyModel, names: Sequence[Hashable] | None = None, *, offset: float = 0.0
) -> tuple[dict[Hashable, float], dict[tuple[Hashable, Hashable], float], float]:
    r"""The energy of a machine in spins: fields ``h``, couplings ``J``, and the offset that goes with them.

    :math:`E = \sum_i h_i s_i + \sum_{i<j} J_{ij} s_i s_j + e_0` in nats. It needs no dimod. **Raises** as `to_bqm`.

    >>> from harmonium.energy.rbm import RBM
    >>> to_ising(RBM.from_arrays([[4.0]], [0.0], [0.0]))
    ({'v0': -1.0, 'h1_0': -1.0}, {('v0', 'h1_0'): -1.0}, -1.0)
    """
    written, _, given = _written(model, "SPIN", names, offset)
    fields = dict(zip(given, written.linear.tolist(), strict=True))
    return fields, _quadratic(written, given), written.offset


def from_bqm(bqm: Any, visible: SupportsIndex | Sequence[Hashable] | None = None) -> FromBQM:
    """The machine whose energies a binary quadratic model has, and the constant that a machine cannot hold.

    ``bqm.energy(sample)`` is ``model.energy(configuration) + offset``, in nats. Units are Bernoulli for a BINARY model
    and Spin for a SPIN one, coupled as the model couples them. ``visible`` names the visible variables, in that order,
    or counts them from the first one; left out, it is those that `to_bqm` names as visible, or all where any variable
    has another name. Hidden units come after them, in the order of the model.

    **Returns** the ``model``, the ``offset`` and ``names``, one per unit. **Raises** `SettingError` for what is no
    binary quadratic model and for visible variables that it does not have, `DataError` for one without variables or
    with a number that is not finite.

    >>> from harmonium.energy.boltzmann import BoltzmannMachine
    >>> pair = BoltzmannMachine.from_arrays([[0.0, 2.0], [2.0, 0.0]], [1.0, 0.0])
    >>> back = from_bqm(to_bqm(pair, offset=0.5))
    >>> back.offset, back.names, back.model.parameters()["coupling"].tolist()
    (0.5, ('v0', 'v1'), [[0.0, 2.0], [2.0, 0.0]])
    """
    if not all(hasattr(bqm, part) for part in ("linear", "quadratic", "offset", "vartype")):
        raise SettingError(
            f"a dimod BinaryQuadraticModel is needed, got a {type(bqm).__name__}; make one of a QUBO by "
            "dimod.BinaryQuadraticModel.from_qubo(Q, offset)"
        )
    kind = _KINDS[checked_vartype(bqm.vartype)]
    variables = list(bqm.linear)
    if not variables:
        raise DataError("the binary quadratic model has no variables, and a machine has at least one unit")
    shown = _visible_of(variables, visible)
    chosen = set(shown)
    names = (*shown, *(name for name in variables if name not in chosen))
    place = {name: unit for unit, name in enumerate(names)}
    size = len(names)
    bias = -np.array([float(bqm.linear[name]) for name in names])
    coupling, pairs = np.zeros((size, size)), []
    for (one, other), value in bqm.quadratic.items():
        first, second = place[one], place[other]
        coupling[first, second] = coupling[second, first] = -float(value)
        pairs.append((first, second))
    if not (np.isfinite(bias).all() and np.isfinite(coupling).all() and np.isfinite(float(bqm.offset))):
        raise DataError("the binary quadratic model holds a number that is not finite; clean it first")
    model = BoltzmannMachine.from_arrays(
        coupling,
        bias,
        len(shown),
        pairs=None if len(pairs) == size * (size - 1) // 2 else np.array(pairs, int).reshape(-1, 2),
        visible=kind,
        hidden=kind,
    )
    return FromBQM(model, float(bqm.offset), names)


def _visible_of(
    variables: list[Hashable], visible: SupportsIndex | Sequence[Hashable] | None
) -> list[Hashable]:
    """The names of the visible variables."""
    if visible is None:
        shown = [name for name, seen in zip(variables, is_visible(variables), strict=True) if seen]
    elif is_whole(visible):
        shown = variables[: int(visible)] if 1 <= int(visible) <= len(variables) else []  # pyright: ignore[reportArgumentType]
    else:
        shown = list(visible)  # pyright: ignore[reportArgumentType]
        unknown = [name for name in shown if name not in variables]
        if unknown or len(set(shown)) < len(shown):
            raise SettingError(
                f"visible names {unknown[0] if unknown else 'a variable'!r}, which the model of {len(variables)} "
                f"variables has not; they begin with {variables[0]!r}"
                if unknown
                else "visible names a variable twice; pass each of them once"
            )
    if not shown:
        raise SettingError(
            f"visible must name or count from 1 to {len(variables)} variables, got {visible!r}; leave it out for all"
        )
    return shown


def _written(
    model: AbstractEnergyModel,
    vartype: str | None,
    names: Sequence[Hashable] | None,
    offset: float,
) -> tuple[Quadratic, str, list[Hashable]]:
    """The energy in the values of a vartype, the vartype, and the names of its variables."""
    quadratic = quadratic_of(model)
    if not is_number(offset) or not np.isfinite(offset):
        raise SettingError(f"offset must be a finite number of nats, got {offset!r}; leave it out for none")
    kind = own_vartype(model) if vartype is None else checked_vartype(vartype)
    written = quadratic.written_in(VALUES[kind])
    shifted = Quadratic(
        written.linear, written.strengths, written.pairs, written.offset + float(offset), written.ends
    )
    return shifted, kind, variable_names(model, names)


def _quadratic(written: Quadratic, names: list[Hashable]) -> dict[tuple[Hashable, Hashable], float]:
    return {
        (names[first], names[second]): value
        for (first, second), value in zip(written.pairs.tolist(), written.strengths.tolist(), strict=True)
    }
