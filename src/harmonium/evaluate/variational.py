"""Log-probabilities of a machine whose hidden layers are coupled: exact, or from below by the mean-field bound."""

from __future__ import annotations

from functools import cache

import jax.numpy as jnp
import numpy as np

from harmonium.energy.dbm import DBM
from harmonium.energy.labels import label_units, split_observed
from harmonium.errors import SettingError
from harmonium.evaluate.bounds import Bound
from harmonium.evaluate.estimate import Estimate, Kind
from harmonium.evaluate.exact import EnumerationPlan, likelihood_operations, unnormalised_log_probability
from harmonium.inference.mean_field import MeanField, bound_at
from harmonium.numerics.compile import compile_function
from harmonium.numerics.enumerate import BIT_BUDGET
from harmonium.numerics.precision import as_double, in_double_precision
from harmonium.typing import Batch

SWEEPS = 1000
"""Most sweeps of the fixed point: any number gives a bound, more give a tighter one."""

TOLERANCE = 1e-11

_ROWS = 512
_NO_PLAN = EnumerationPlan(None, 0, 0.0, 0.0, False)


def can_score(dbm: DBM, rows: int, bits: int, operations: float) -> bool:
    """Whether the hidden layers of so many rows can be summed over within both budgets."""
    return (
        dbm.split(held=True).bits <= min(bits, BIT_BUDGET)
        and likelihood_operations(dbm, rows, _NO_PLAN) <= operations
    )


def scores_of_dbm(
    dbm: DBM, rows: np.ndarray, method: object, bits: int = BIT_BUDGET, operations: float = np.inf
) -> Estimate:
    r"""Per row :math:`\log p(v) + \log Z` in float64 nats: exact where asked or affordable, else the mean-field bound.

    Raises `SettingError` for settings of a `Bound` that are of networks.
    """
    if isinstance(method, Bound) and (method.estimator != "variational" or method.exact is not None):
        raise SettingError(
            f"the bound of a {type(dbm).__name__} is its mean-field fixed point, without draws and without a sum over "
            'states; pass method="bound" (--method bound)'
        )
    bound = method == "bound" or isinstance(method, Bound)
    if bound or (method != "exact" and not can_score(dbm, len(rows), bits, operations)):
        return mean_field_bound(dbm, rows)
    return Estimate(value=unnormalised_log_probability(dbm, rows))


def mean_field_bound(dbm: DBM, rows: np.ndarray) -> Estimate:
    r"""Per row :math:`-E(v, m) + H(m) \le \log p(v) + \log Z` at the mean-field fixed point, in float64 nats.

    .. math:: b_0^\top v + \sum_{l \ge 1} \big(b_l^\top m_l + m_{l-1}^\top W_l\, m_l + H(m_l)\big), \qquad m_0 = v

    Of a machine with a label layer it is that of :math:`\log p(v, y)` where rows have labels behind them, and else the
    label too is inferred. With one hidden layer, and with the label where there is one, it is no bound but the number
    itself. ``reason`` holds the sweeps and the residual, ``cost``
    the operations. Source: the chapter's variational bound of the deep Boltzmann machine; the printed energy has no
    biases.

    >>> dbm = DBM.from_arrays([np.zeros((2, 2)), np.zeros((2, 1))], [np.zeros(2), np.zeros(2), np.zeros(1)])
    >>> mean_field_bound(dbm, np.array([[0.0, 1.0]])).value  # 3 log 2
    array([2.07944154])
    """
    double = as_double(dbm)
    found = [
        _bounds(double, np.asarray(rows[start : start + _ROWS], np.float64))
        for start in range(0, len(rows), _ROWS)
    ]
    values = np.concatenate([values for values, _, _ in found])
    residual = max(residual for _, residual, _ in found)
    sweeps = max(count for _, _, count in found)
    alone = rows.shape[-1] == dbm.units[0].size and label_units(dbm) is not None
    coupled = alone or bool(dbm.split(held=True).bits)
    pairs = sum(coupling.kernel.size for coupling in dbm.couplings)
    return Estimate(
        value=values,
        kind=Kind.LOWER if coupled else Kind.EXACT,
        reliable=bool(np.isfinite(values).all()),
        reason=f"mean field, {sweeps} sweeps to a residual of {residual:.1e}" if coupled else "",
        method="mean-field" if coupled else "exact",
        cost={"operations": 4.0 * len(rows) * (sweeps + 1) * pairs, "residual": residual},
    )


@in_double_precision
def _bounds(dbm: DBM, rows: np.ndarray) -> tuple[np.ndarray, float, int]:
    values, residual, sweeps = _bound_program()(dbm, rows)
    return np.asarray(values), float(residual), int(sweeps)


@cache
def _bound_program():
    def program(dbm, rows):
        visible, label = split_observed(dbm, rows)
        number = None if label is None else jnp.argmax(label, axis=-1)
        found = MeanField(SWEEPS, tolerance=TOLERANCE).solve(dbm, Batch(x=visible, label=number))
        return bound_at(dbm, found.means), found.residual, found.sweeps

    return compile_function(program)
