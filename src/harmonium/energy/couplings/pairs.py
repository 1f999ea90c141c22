"""Couplings among the units of one population: a symmetric matrix without a diagonal, each pair stored once."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.couplings.graph import Graph


class Pairs(eqx.Module):
    r"""Energy :math:`-\sum_{i<j} C_{ij} x_i x_j = -\tfrac12 x^\top C x` of one population of units.

    ``strengths`` holds one number per pair of ``graph``, and nothing else is a parameter: a derivative is that of the
    tied pair. Differentiating a full symmetric matrix would give half of it, and a diagonal that must stay zero.
    """

    strengths: Float[Array, " pairs"]
    graph: Graph = eqx.field(static=True)

    def matrix(self) -> Float[Array, "n n"]:
        """The symmetric matrix, zero on its diagonal and where units are not coupled."""
        return _spread(self.graph, jnp.asarray(self.strengths))

    @classmethod
    def of_matrix(cls, matrix: Float[np.ndarray, "n n"], graph: Graph) -> Pairs:
        """The couplings of a symmetric matrix, as far as the graph has them."""
        first, second = graph.pairs.T
        return cls(matrix[first, second], graph)  # pyright: ignore[reportArgumentType]


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _spread(graph: Graph, strengths: Float[Array, " pairs"]) -> Float[Array, "n n"]:
    """One number per pair, at both of its places.

    Its own derivative is a gather, like itself. The scatter that automatic differentiation would make of it is slow on
    a CPU and adds in any order on a GPU, where a resumed run must repeat every bit.
    """
    padded = jnp.concatenate([strengths, jnp.zeros(1, strengths.dtype)])
    return padded[graph.places]


def _spread_forward(graph: Graph, strengths: Array) -> tuple[Array, None]:
    return _spread(graph, strengths), None


def _spread_backward(graph: Graph, _: None, slope: Float[Array, "n n"]) -> tuple[Array]:
    first, second = graph.pairs.T
    return (slope[first, second] + slope[second, first],)


_spread.defvjp(_spread_forward, _spread_backward)
