"""Units that are the mean of two copies of a binary unit."""

from __future__ import annotations

from typing import ClassVar, SupportsIndex

import equinox as eqx
from jaxtyping import Array, Float, UInt32
from numpy.typing import ArrayLike

from harmonium.errors import SettingError
from harmonium.numerics.random import uniform
from harmonium.units.base import AbstractLinearUnits, AbstractUnits, starting_bias
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.spin import Spin


class AbstractPair(AbstractLinearUnits):
    r"""Two copies of a binary unit that share every parameter, as one unit: their mean :math:`u = (x + x')/2`.

    With field :math:`f` each copy has field :math:`f/2`, so that :math:`p(x, x') \propto e^{f u}`, the cumulant is
    :math:`2 A(f/2)` with :math:`A` that of one copy, and the mean is that of one copy. ``support`` lists the *states of
    the two copies*, so that the middle value stands in it twice: energies, entropies and sums over states are those of
    the copies, and data, in which both copies are the same, lie at its two ends.

    An RBM with pairs on one side and twice the parameters, :math:`(2W, 2b, 2c)`, is an RBM of parameters
    :math:`(W, b, c)` in which that side stands twice: its other side follows from both copies,
    :math:`\sigma(2(vW + c))`, and each copy from it by :math:`\sigma(b + Wh)`. That is how the ends of a deep Boltzmann
    machine are trained one by one, see `harmonium.energy.doubling`. Source: Salakhutdinov and Hinton, "Deep Boltzmann
    machines" (2009), section 3.1.
    """

    of: eqx.AbstractClassVar[type[AbstractUnits]]

    def _copy(self) -> AbstractUnits:
        return self.of(bias=self.bias / 2)

    def log_partition(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        return 2 * self._copy().log_partition(field / 2)

    def log_partition_change(
        self, field: Float[Array, "*batch n"], change: Float[Array, "*batch n"]
    ) -> Float[Array, "*batch"]:
        return 2 * self._copy().log_partition_change(field / 2, change / 2)

    def mean(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        return self._copy().mean(field / 2)

    def mode(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        return self._copy().mode(field / 2)

    def sample(
        self, words: UInt32[Array, "*batch n"], field: Float[Array, "*batch n"]
    ) -> Float[Array, "*batch n"]:
        """Both copies by one word: both are high below :math:`p^2`, and one at least below :math:`1 - (1 - p)^2`."""
        low, high = self.ends
        drawn = uniform(words, field.dtype)
        on, off = ((self.mean(sign * field) - low) / (high - low) for sign in (1, -1))
        both, either = drawn < on**2, drawn < 1 - off**2
        return low + (high - low) * (both.astype(field.dtype) + either.astype(field.dtype)) / 2

    def field_of_mean(self, mean: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        return 2 * self._copy().field_of_mean(mean)


class BernoulliPair(AbstractPair):
    """Pairs of units that are 0 or 1; see `AbstractPair`.

    >>> BernoulliPair(3).support
    (0.0, 0.5, 0.5, 1.0)
    """

    bias: Float[Array, " n"]

    kind: ClassVar[str] = "bernoulli-pair"
    support: ClassVar[tuple[float, ...]] = (0.0, 0.5, 0.5, 1.0)
    of: ClassVar[type[AbstractUnits]] = Bernoulli

    def __init__(self, size: SupportsIndex | None = None, *, bias: ArrayLike | None = None):
        self.bias = starting_bias(size, bias, "BernoulliPair")


class SpinPair(AbstractPair):
    """Pairs of spins; see `AbstractPair`.

    >>> SpinPair(3).support
    (-1.0, 0.0, 0.0, 1.0)
    """

    bias: Float[Array, " n"]

    kind: ClassVar[str] = "spin-pair"
    support: ClassVar[tuple[float, ...]] = (-1.0, 0.0, 0.0, 1.0)
    of: ClassVar[type[AbstractUnits]] = Spin

    def __init__(self, size: SupportsIndex | None = None, *, bias: ArrayLike | None = None):
        self.bias = starting_bias(size, bias, "SpinPair")


_PAIRS: tuple[type[AbstractPair], ...] = (BernoulliPair, SpinPair)


def pair_of(kind: str) -> type[AbstractUnits]:
    """The pairs of a kind of unit. Raises `SettingError` for a kind that has none.

    >>> pair_of("spin").kind
    'spin-pair'
    """
    for pair in _PAIRS:
        if pair.of.kind == kind:
            return pair
    raise SettingError(
        f"there are no pairs of {kind} units, as levels of a deep Boltzmann machine are trained with; use Bernoulli or "
        "Spin units, or train all levels at once with hm.fit"
    )
