"""Variables that take one of several values: softmax units, such as labels."""

from __future__ import annotations

from typing import SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32
from numpy.typing import ArrayLike

from harmonium.errors import SettingError
from harmonium.numerics.random import uniform
from harmonium.numerics.whole import whole_number
from harmonium.units.base import AbstractLinearUnits, check_size, starting_bias

KIND = "categorical"

_SMALL_CHANGE = 1.0


class Categorical(AbstractLinearUnits):
    r"""A layer of ``variables`` variables, each of which takes one of ``states`` values: softmax units.

    A variable is a block of ``states`` units of which exactly one is 1 (one-hot), so that the layer has
    ``variables * states`` units, block after block. With the field :math:`f` of a block,

    .. math:: p(x = e_k) = \frac{e^{f_k}}{\sum_j e^{f_j}}, \qquad A(f) = \log \sum_j e^{f_j}

    and the layer's own energy is :math:`-b^\top x`, in nats. Adding a number to all fields of a block changes nothing
    but the cumulant, by that number: :meth:`field_of_mean` gives the field of cumulant zero. Of a tie the first state
    is the mode. One random word draws a variable, by the inverse of its distribution function; the others of its block
    are not read.

    ``kind`` holds the number of states, as in "categorical:10". Raises `SettingError` for fewer than two states, for no
    variable, and for a bias that does not fall into blocks. Source: the chapter's softmax label units.

    >>> labels = Categorical(3)
    >>> labels.kind, labels.size, Categorical(3, 2).size
    ('categorical:3', 3, 6)
    """

    bias: Float[Array, " n"]
    states: int = eqx.field(static=True)

    def __init__(
        self, states: SupportsIndex, variables: SupportsIndex | None = None, *, bias: ArrayLike | None = None
    ):
        self.states = whole_number(
            states,
            "Categorical needs a whole number of states, at least 2",
            "pass e.g. 10",
            least=2,
            most=2**20,
        )
        count = 1 if variables is None else check_size(variables, "Categorical(10, variables")
        self.bias = starting_bias(self.states * count, bias, "Categorical")
        if self.bias.shape[-1] % self.states or (variables is not None and self.variables != count):
            raise SettingError(
                f"a bias of {self.bias.shape[-1]} units is not one of {count} variables of {self.states} states; pass "
                f"{self.states} numbers for each variable"
            )

    @property
    def kind(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The kind of unit with its number of states."""
        return f"{KIND}:{self.states}"

    @property
    def support(self) -> tuple[float, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The values of a single unit; how many of a block are 1 is not free."""
        return (0.0, 1.0)

    @property
    def variables(self) -> int:
        """How many variables the layer has."""
        return self.size // self.states

    def log_partition(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        return jnp.sum(jax.nn.logsumexp(self._blocks(field), axis=-1), axis=-1)

    def log_partition_change(
        self, field: Float[Array, "*batch n"], change: Float[Array, "*batch n"]
    ) -> Float[Array, "*batch"]:
        r"""Per variable :math:`\log \sum_k p_k e^{d_k}`, with small changes by :math:`e^d - 1` about their mean."""
        log_mean = jax.nn.log_softmax(self._blocks(field), axis=-1)
        mean, change = jnp.exp(log_mean), self._blocks(change)
        middle = jnp.sum(mean * change, axis=-1, keepdims=True)
        apart = change - middle
        near = jnp.clip(apart, -_SMALL_CHANGE, _SMALL_CHANGE)
        small = jnp.log1p(jnp.sum(mean * jnp.expm1(near), axis=-1))
        large = jax.nn.logsumexp(log_mean + apart, axis=-1)
        is_small = jnp.max(jnp.abs(apart), axis=-1) <= _SMALL_CHANGE
        return jnp.sum(middle[..., 0] + jnp.where(is_small, small, large), axis=-1)

    def mean(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        return jax.nn.softmax(self._blocks(field), axis=-1).reshape(field.shape)

    def mode(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        return self._one_hot(jnp.argmax(self._blocks(field), axis=-1), field)

    def sample(
        self, words: UInt32[Array, "*batch n"], field: Float[Array, "*batch n"]
    ) -> Float[Array, "*batch n"]:
        below = jnp.cumsum(jax.nn.softmax(self._blocks(field), axis=-1), axis=-1)[..., :-1]
        level = uniform(self._blocks(words)[..., :1], field.dtype)
        return self._one_hot(jnp.sum(below <= level, axis=-1), field)

    def entropy(self, field: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
        log_mean = jax.nn.log_softmax(self._blocks(field), axis=-1)
        return -jnp.sum(jnp.exp(log_mean) * log_mean, axis=(-2, -1))

    def field_of_mean(self, mean: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        return jnp.log(mean)

    def one_hot(self, states: Array) -> Float[Array, "*batch n"]:
        """A layer of one variable at the given states, counted from 0; all zero for a state that it does not have."""
        return jax.nn.one_hot(states, self.states, dtype=jnp.result_type(self.bias))

    def _blocks(self, values: Array) -> Array:
        return values.reshape(*values.shape[:-1], -1, self.states)

    def _one_hot(self, states: Array, field: Array) -> Array:
        return jax.nn.one_hot(states, self.states, dtype=field.dtype).reshape(field.shape)
