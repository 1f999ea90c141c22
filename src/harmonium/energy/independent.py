"""Layers without couplings: where a path to a model starts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from harmonium.energy.couplings.absent import Absent
from harmonium.energy.layered import AbstractLayered
from harmonium.errors import SettingError
from harmonium.numerics.precision import as_double, in_double_precision
from harmonium.units.base import AbstractUnits
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.categorical import Categorical
from harmonium.units.kinds import unit_class


class Independent(AbstractLayered):
    r"""Layers whose units are all independent, :math:`E(x) = \sum_l E_l(x^l)`, in nats.

    Its partition function is known, :math:`\log Z = \sum_l A_l`, and it is sampled in one draw. As the base of a
    `harmonium.energy.path.Path` it has the layers of the model at the other end: the layers of a model at rest, or
    layers at marginals of their own. Raises `SettingError` for no layer at all. Source: the base-rate model of
    Salakhutdinov and Murray, "On the quantitative analysis of deep belief networks" (2008), section 4.1; theirs has
    a bias for the visible units only, ours for every layer.

    >>> from harmonium.units.bernoulli import Bernoulli
    >>> Independent((Bernoulli(3), Bernoulli(2))).log_partition()  # 5 log 2
    3.465735902799...
    """

    units: tuple[AbstractUnits, ...]
    couplings: tuple[Absent, ...]  # pyright: ignore[reportIncompatibleUnannotatedOverride]

    def __init__(self, units: Sequence[AbstractUnits]):
        if not units:
            raise SettingError("an Independent model has at least one layer, got none")
        self.units = tuple(units)
        self.couplings = tuple(Absent(lower.size, upper.size) for lower, upper in pairwise(units))

    @classmethod
    def from_arrays(cls, biases: Sequence[ArrayLike], *, kinds: Sequence[str] | None = None) -> Independent:
        """Layers of the given biases (their dtype is kept), Bernoulli units unless ``kinds`` says otherwise."""
        names = [Bernoulli.kind] * len(biases) if kinds is None else kinds
        return cls([unit_class(kind)(bias=bias) for kind, bias in zip(names, biases, strict=True)])

    def parameters(self) -> dict[str, Any]:
        """The arguments of :meth:`from_arrays`: numpy arrays, and the kinds of unit when not all are Bernoulli."""
        arguments: dict[str, Any] = {"biases": [np.asarray(units.bias) for units in self.units]}
        kinds = [units.kind for units in self.units]
        if set(kinds) != {Bernoulli.kind}:
            arguments["kinds"] = kinds
        return arguments

    def log_partition(self) -> float:
        r"""The exact :math:`\log Z`, the sum of the cumulants at rest, in float64 nats."""
        return _log_partition(as_double(self))


@in_double_precision
def _log_partition(model: Independent) -> float:
    return sum(float(units.log_partition(jnp.asarray(units.natural()))) for units in model.units)


@in_double_precision
def field_of_marginals(units: AbstractUnits, mean: ArrayLike, count: float) -> np.ndarray:
    """The field at which ``units`` have the means of ``count`` rows, smoothed by one row of each end of the support.

    Softmax units are smoothed by one row of each state.

    In float64: in float32 one row among more than 2**24 is lost, and the field of a constant column infinite.

    >>> from harmonium.units.bernoulli import Bernoulli
    >>> field_of_marginals(Bernoulli(2), [0.5, 1.0], 6).tolist()  # log(4/4), log(7/1)
    [0.0, 1.945910149055...]
    """
    total = np.asarray(mean, np.float64) * count
    if isinstance(units, Categorical):
        return np.asarray(units.field_of_mean(jnp.asarray((total + 1.0) / (count + units.states))))
    low, high = units.support[0], units.support[-1]
    smoothed = (total + low + high) / (count + 2.0)
    return np.asarray(units.field_of_mean(jnp.asarray(smoothed)))
