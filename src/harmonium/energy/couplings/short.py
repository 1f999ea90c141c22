"""Dense couplings whose products read 16-bit numbers."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from harmonium.energy.couplings.dense import Dense
from harmonium.errors import SettingError

Model = TypeVar("Model")

_SHORT = jnp.bfloat16


class Short(eqx.Module):
    r"""The energy of `harmonium.energy.couplings.dense.Dense`, its products taken of weights rounded to bfloat16.

    Sums are accumulated in single precision. States of 0, 1 and -1 are exact in sixteen bits, so that fields are those
    of a machine with rounded weights, off by a relative 2^-8 at most per weight. The gradient passes through the
    rounding as if it were not there and is a product in single precision: the weights themselves keep all their bits.
    Layers of other numbers than those, such as means, are rounded too.
    """

    kernel: Float[Array, "upper lower"]

    def forward(self, lower: Float[Array, "*batch lower"]) -> Float[Array, "*batch upper"]:
        r"""Input of the upper layer, :math:`x W`."""
        return _product(1, self.kernel, lower)

    def backward(self, upper: Float[Array, "*batch upper"]) -> Float[Array, "*batch lower"]:
        r"""Input of the lower layer, :math:`y W^\top`."""
        return _product(0, self.kernel, upper)


def with_short_products(model: Model) -> Model:
    """The model with every dense coupling as a `Short` one.

    Raises `SettingError` for a model without dense couplings.
    """

    def is_dense(part: object) -> bool:
        return isinstance(part, Dense)

    if not any(map(is_dense, jax.tree.leaves(model, is_leaf=is_dense))):
        raise SettingError(
            f"precision='bfloat16' is for dense couplings between layers, which a {type(model).__name__} has none of; "
            "use precision='float32'"
        )
    return jax.tree.map(lambda part: Short(part.kernel) if is_dense(part) else part, model, is_leaf=is_dense)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _product(
    axis: int, kernel: Float[Array, "upper lower"], layer: Float[Array, "*batch n"]
) -> Float[Array, "*batch m"]:
    """``layer`` times the kernel, summed over ``axis`` of the kernel."""
    contracted = (((layer.ndim - 1,), (axis,)), ((), ()))
    return jax.lax.dot_general(
        layer.astype(_SHORT), kernel.astype(_SHORT), contracted, preferred_element_type=kernel.dtype
    )


def _product_forward(axis: int, kernel: Array, layer: Array) -> tuple[Array, tuple[Array, Array]]:
    return _product(axis, kernel, layer), (kernel, layer)


def _product_backward(axis: int, kept: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    kernel, layer = kept
    rows = tuple(range(layer.ndim - 1))
    pair = (slope, layer) if axis else (layer, slope)
    of_kernel = jnp.tensordot(*pair, axes=(rows, rows))
    return of_kernel, slope @ (kernel if axis else kernel.T)


_product.defvjp(_product_forward, _product_backward)
