"""Learning rates as functions of what time it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from harmonium.errors import SettingError

Rates = float | Sequence[float] | np.ndarray
"""A learning rate for all, or one for each member of an ensemble."""


class AbstractSchedule(eqx.Module):
    """A learning rate at update ``index`` of a stretch that runs from ``start`` to ``horizon``.

    ``first`` and ``last`` are numbers, or arrays of one number for each member of an ensemble; so is a rate.
    """

    first: eqx.AbstractVar[float | Float[Array | np.ndarray, " members"]]
    last: eqx.AbstractVar[float | Float[Array | np.ndarray, " members"]]

    @abstractmethod
    def rate(
        self, index: Int[Array, ""], start: Int[Array, ""], horizon: Int[Array, ""]
    ) -> Float[Array, "*members"]:
        """The rate of the update; past the horizon it stays where the stretch ended."""

    @property
    def of_members(self) -> bool:
        """Whether members of an ensemble have rates of their own."""
        return np.ndim(self.first) > 0


class Linear(AbstractSchedule):
    r"""From ``first`` at the start to ``last`` at the horizon in a straight line.

    >>> float(Linear(0.4, 0.0).rate(jnp.int32(50), jnp.int32(0), jnp.int32(100)))
    0.2...
    """

    first: float | Float[Array | np.ndarray, " members"]
    last: float | Float[Array | np.ndarray, " members"] = 0.0

    def __check_init__(self):
        for name, value in (("learning_rate", self.first), ("final_rate", self.last)):
            if not np.all((np.asarray(value) >= 0) & (np.asarray(value) < np.inf)):
                raise SettingError(
                    f"{name} must be a finite number of at least 0, got {value}; pass e.g. 0.1"
                )

    def rate(
        self, index: Int[Array, ""], start: Int[Array, ""], horizon: Int[Array, ""]
    ) -> Float[Array, "*members"]:
        length = jnp.maximum(horizon - start, 1).astype(jnp.float32)
        progress = jnp.clip((index - start).astype(jnp.float32) / length, 0.0, 1.0)
        return jnp.float32(self.first) + jnp.float32(self.last - self.first) * progress
