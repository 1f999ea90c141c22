"""How far the two laws of a code lie apart: what a level of a stack makes of it, and what the level above knows."""

from __future__ import annotations

from functools import cache

import jax.numpy as jnp
import numpy as np

from harmonium.energy.rbm import RBM
from harmonium.energy.stack import AbstractStack
from harmonium.numerics.compile import compile_function
from harmonium.numerics.enumerate import check_bits, chunk_bits, chunk_of_states
from harmonium.numerics.precision import as_double, in_double_precision

CODE_BITS = 14
"""Most units of a code that are enumerated unless the caller allows more."""


def code_distances(stack: AbstractStack, bit_budget: int = CODE_BITS) -> list[float]:
    r"""Total variation between the law of :math:`h_i` in level :math:`i` and that of :math:`v_{i+1}` above it.

    .. math:: \tfrac12 \sum_h |p_i(h) - p_{i+1}(h)|

    for every pair of levels from the bottom, exact, in float64, by enumeration of the codes. Near 0 the levels agree on
    which codes there are. Near 1 a level has its mass where the one above never goes: swaps may be frequent all the
    same, for they are between codes that the data have, while the partition function of the lower level is that of
    another code.

    Raises `BudgetError` for codes of more than ``bit_budget`` units. "Deep Tempering" (2014) looks at swap rates only.

    >>> from harmonium.energy.dbn import DBN
    >>> len(code_distances(DBN(6, [3, 2], weight_scale=0.0)))
    1
    """
    found = []
    for lower, upper in zip(stack.levels[:-1], stack.levels[1:], strict=True):
        bits = lower.units[1].size
        check_bits(bits, bit_budget, "the law of a code", "look at the swap rate alone", "bit_budget={}")
        laws = [_law_of_codes(lower, 1), _law_of_codes(upper, 0)]
        found.append(float(np.abs(laws[0] - laws[1]).sum() / 2))
    return found


@in_double_precision
def _law_of_codes(rbm: RBM, side: int) -> np.ndarray:
    energies = np.concatenate(
        [
            np.asarray(_energies_program()(as_double(rbm), side, number))
            for number in range(1 << (rbm.units[side].size - chunk_bits(rbm.units[side].size)))
        ]
    )
    weight = np.exp(energies.min() - energies)
    return weight / weight.sum()


@cache
def _energies_program():
    def energies(rbm, side, number):
        units = rbm.units[side]
        low, high = units.support
        codes = chunk_of_states(jnp.int32(number), units.size, low, high, jnp.result_type(units.bias))
        return rbm.marginal_energy(side, (codes,))

    return compile_function(energies, static_argnums=1)
