"""What a layer of variables must be able to do, given its natural parameter."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32
from numpy.typing import ArrayLike

from harmonium.numerics.whole import whole_number


class AbstractUnits(eqx.Module):
    r"""One layer of conditionally independent variables of an exponential family.

    A layer is described by a natural parameter, its *field* :math:`f`, so that
    :math:`p(x \mid f) = e^{f x} / e^{A(f)}` for every unit. At rest the field is :meth:`natural`; couplings add their
    input to it. Tempering multiplies the whole field: it never touches a stored array.

    Every method acts on the last axis and broadcasts over the leading ones. To add a kind of unit, subclass this in a
    file of its own, implement every abstract method, and add one row to ``tests/contracts/cases.py``.
    """

    bias: eqx.AbstractVar[Float[Array, " n"]]

    kind: eqx.AbstractClassVar[str]
    support: eqx.AbstractClassVar[tuple[float, ...]]

    @abstractmethod
    def __init__(self, size: SupportsIndex | None = None, *, bias: ArrayLike | None = None):
        """A layer of ``size`` units at rest at zero, or one with the given bias, whose dtype is kept."""

    @property
    def size(self) -> int:
        """How many units the layer has."""
        return self.bias.shape[-1]

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value: the two that data of binary units, or of pairs of them, have."""
        return self.support[0], self.support[-1]

    def with_bias(self, bias: ArrayLike) -> Self:
        """A layer of the same kind with another bias."""
        return eqx.tree_at(lambda units: units.bias, self, bias)

    @abstractmethod
    def natural(self) -> Float[Array, " n"]:
        """The field of the layer when nothing is coupled to it."""

    @abstractmethod
    def log_partition(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        """The cumulant :math:`A(f)` summed over the layer, in nats."""

    @abstractmethod
    def log_partition_change(
        self, field: Float[Array, "*batch n"], change: Float[Array, "*batch n"]
    ) -> Float[Array, "*batch"]:
        """:math:`A(f + d) - A(f)` summed over the layer, in nats, exact to rounding of ``change`` :math:`d`."""

    @abstractmethod
    def mean(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        """Expectation of every unit: the derivative of its cumulant."""

    @abstractmethod
    def mode(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        """Most probable value of every unit; a tie falls to the lower value."""

    @abstractmethod
    def sample(
        self, words: UInt32[Array, "*batch n"], field: Float[Array, "*batch n"]
    ) -> Float[Array, "*batch n"]:
        """One draw of every unit from random words of the layer's shape."""

    @abstractmethod
    def base_energy(self, x: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        """Energy of the layer by itself, summed over its units, in nats."""

    @abstractmethod
    def expected_energy(self, mean: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        """Expectation of :meth:`base_energy` under independent units of the given means."""

    @abstractmethod
    def entropy(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        """Entropy of the layer's conditional law, summed over its units, in nats."""

    @abstractmethod
    def field_of_mean(self, mean: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        """The field whose :meth:`mean` is ``mean``: the inverse of the mean map, inside its open range."""


class AbstractLinearUnits(AbstractUnits):
    r"""Units whose own energy is linear, :math:`-b^\top x`: the field at rest is the bias itself."""

    def natural(self) -> Float[Array, " n"]:
        return self.bias

    def base_energy(self, x: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        return -(x @ self.bias)

    def expected_energy(self, mean: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        return -(mean @ self.bias)

    def entropy(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        return self.log_partition(field) - jnp.sum(field * self.mean(field), axis=-1)


class AbstractTwoValuedUnits(AbstractLinearUnits):
    """Linear units that take either of two values, each independently of the others of its layer."""


def starting_bias(size: SupportsIndex | None, bias: ArrayLike | None, what: str) -> Array:
    """The bias a layer starts from: the given one (its dtype kept), or ``size`` zeros."""
    if bias is not None:
        return bias if isinstance(bias, jax.Array | np.ndarray) else jnp.asarray(bias)  # pyright: ignore[reportReturnType]
    return jnp.zeros(check_size(size, what), jnp.float32)


def check_size(size: SupportsIndex | None, what: str) -> int:
    """Return ``size`` if it counts at least one unit, else raise."""
    example = f"{what}(16)" if what != "RBM" else "RBM(64, 16)"
    return whole_number(
        size, f"{what} needs a whole number of units, at least 1", f"pass e.g. {example}", most=2**31 - 1
    )
