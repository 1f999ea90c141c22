"""Valleys of a machine whose hidden codes can be enumerated: its clusters, with their exact weights."""

from __future__ import annotations

from typing import NamedTuple, SupportsIndex

import numpy as np
from jaxtyping import Float, Int

from harmonium.energy.base import AbstractEnergyModel, check_model
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.errors import SettingError
from harmonium.evaluate.exact import marginal_energies
from harmonium.numerics.enumerate import check_bits
from harmonium.numerics.whole import is_number, whole_number

BIT_BUDGET = 16
"""Most hidden units whose codes are sorted into valleys: a step of Python for each of them and each unit."""


class Valleys(NamedTuple):
    """Hidden codes by valley; a code has hidden unit ``j`` at bit ``j`` of its number.

    - ``labels``: per code, its valley, counted from 0, the heaviest first; -1 for codes of valleys that were left out.
    - ``weights``: probability of each valley, exactly; ``elsewhere``: that of all that was left out.
    - ``bottoms``: the most probable code of each valley.
    - ``code_weights``: probability of every code.
    """

    labels: Int[np.ndarray, " codes"]
    weights: Float[np.ndarray, " valleys"]
    elsewhere: float
    bottoms: Int[np.ndarray, " valleys"]
    code_weights: Float[np.ndarray, " codes"]


def hidden_valleys(
    model: AbstractEnergyModel,
    barrier: float = 3.0,
    least_weight: float = 0.01,
    *,
    bit_budget: SupportsIndex = BIT_BUDGET,
) -> Valleys:
    r"""What remains apart when valleys of :math:`F(h) = -\log \sum_v e^{-E(v, h)}` behind low barriers are joined.

    Codes are flooded from the lowest :math:`F` upwards; neighbours differ in one hidden unit. Where two valleys meet,
    the shallower one is joined to the other when the pass is less than ``barrier`` nats above its bottom, else they
    stay two. Valleys of less than ``least_weight`` are left out, so that to visit all is something that can be done.

    **Raises** `SettingError` for a model without two sides or units that are not two-valued, a negative barrier and a
    weight out of [0, 1), `BudgetError` for more hidden units than ``bit_budget``.

    Source: the persistence of basins, Edelsbrunner, Letscher and Zomorodian, "Topological persistence and
    simplification" (2002), on the cube of codes.

    >>> from harmonium.energy.rbm import RBM
    >>> pair = RBM.from_arrays([[9.0, -9.0]], [0.0], [-4.5, 4.5])
    >>> found = hidden_valleys(pair)
    >>> found.bottoms.tolist(), found.weights.round(2).tolist()
    ([1, 2], [0.5, 0.5])
    """
    check_model(model)
    machine = _machine(model)
    bits = machine.units[1].size
    budget = whole_number(bit_budget, "bit_budget must be a whole number of at least 0", least=0)
    check_bits(
        bits,
        budget,
        f"the valleys of this {type(model).__name__}",
        "take a machine of fewer",
        "bit_budget={}",
    )
    for name, value, most in (("barrier", barrier, np.inf), ("least_weight", least_weight, 1.0)):
        if not is_number(value) or not 0 <= value < most:
            raise SettingError(
                f"{name} must be a number from 0{'' if most > 1 else ' below 1'}, got {value!r}"
            )
    codes = np.arange(1 << bits)
    energy = marginal_energies(machine, 1, (hidden_of(machine, codes),))
    weight = np.exp(energy.min() - energy)
    weight /= weight.sum()
    roots = _flooded(energy, bits, barrier)
    found, place = np.unique(roots, return_inverse=True)
    total = np.bincount(place, weight)
    order = np.argsort(-total, kind="stable")
    order = order[total[order] >= least_weight]
    number = np.full(len(found), -1)
    number[order] = np.arange(len(order))
    return Valleys(number[place], total[order], float(1 - total[order].sum()), found[order], weight)


def hidden_of(model: AbstractBipartite, codes: np.ndarray) -> Float[np.ndarray, "*batch hidden"]:
    """Hidden rows of numbered codes: unit ``j`` has its upper value where bit ``j`` is set."""
    units = model.units[1]
    low, high = units.support
    bits = np.asarray(codes)[..., None] >> np.arange(units.size) & 1
    return low + (high - low) * bits.astype(np.float64)


def _flooded(energy: Float[np.ndarray, " codes"], bits: int, barrier: float) -> np.ndarray:
    """Per code the lowest code of its valley."""
    height: list[float] = energy.tolist()
    owner = [-1] * len(height)
    joined: dict[int, int] = {}

    def root(code: int) -> int:
        while code in joined:
            code = joined[code]
        return code

    for code in np.argsort(energy, kind="stable").tolist():
        around = [code ^ (1 << bit) for bit in range(bits)]
        wet = [near for near in around if owner[near] >= 0]
        if not wet:
            owner[code] = code
            continue
        owner[code] = root(owner[min(wet, key=height.__getitem__)])
        lowest, *others = sorted({root(owner[near]) for near in wet}, key=height.__getitem__)
        for bottom in others:
            if height[code] - height[bottom] < barrier:
                joined[bottom] = lowest
    return np.array([root(code) for code in owner])


def _machine(model: AbstractEnergyModel) -> AbstractBipartite:
    if not isinstance(model, AbstractBipartite) or model.sides != ((0,), (1,)):
        raise SettingError(
            "valleys of hidden codes are those of a machine of two layers such as hm.RBM(64, 16), got a "
            f"{type(model).__name__}"
        )
    if len(model.units[1].support) != 2:
        raise SettingError(f"hidden units of two values are needed, got {model.units[1].kind} units")
    return model
