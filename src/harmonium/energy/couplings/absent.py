"""No coupling at all between two layers."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class Absent(eqx.Module):
    """A coupling of zero: it has the two methods of every coupling and no parameter, so that nothing is multiplied."""

    lower: int = eqx.field(static=True)
    upper: int = eqx.field(static=True)

    @property
    def weights(self) -> Float[Array, "lower upper"]:
        """The weights, lower by upper layer: zeros."""
        return jnp.zeros((self.lower, self.upper))

    def forward(self, lower: Float[Array, "*batch lower"]) -> Float[Array, "*batch upper"]:
        """Input of the upper layer: zero."""
        return jnp.zeros((*lower.shape[:-1], self.upper), lower.dtype)

    def backward(self, upper: Float[Array, "*batch upper"]) -> Float[Array, "*batch lower"]:
        """Input of the lower layer: zero."""
        return jnp.zeros((*upper.shape[:-1], self.lower), upper.dtype)
