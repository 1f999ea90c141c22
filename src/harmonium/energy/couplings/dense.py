"""Every unit of one layer coupled to every unit of the next."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float


class Dense(eqx.Module):
    r"""Energy :math:`-x^\top W y` between a lower layer :math:`x` and an upper layer :math:`y`.

    The kernel is stored upper by lower, the transpose of :math:`W`: the lower layer is nearly always the longer one,
    and having it contiguous makes a small machine 1.8 times faster. Outside this file weights are lower by upper.
    """

    kernel: Float[Array, "upper lower"]

    @property
    def weights(self) -> Float[Array, "lower upper"]:
        """The weights, lower by upper layer."""
        return self.kernel.T

    def forward(self, lower: Float[Array, "*batch lower"]) -> Float[Array, "*batch upper"]:
        r"""Input of the upper layer, :math:`x W`."""
        if lower.ndim == 1:
            # For a single vector the transposed product reads the kernel against its layout: 5 times slower.
            return self.kernel @ lower
        return lower @ self.kernel.T

    def backward(self, upper: Float[Array, "*batch upper"]) -> Float[Array, "*batch lower"]:
        r"""Input of the lower layer, :math:`y W^\top`."""
        return upper @ self.kernel
