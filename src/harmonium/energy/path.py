"""The straight line between two models of the same layers."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.cumulant import Split
from harmonium.energy.layered import AbstractLayered
from harmonium.errors import SettingError
from harmonium.typing import Configuration, Layers
from harmonium.units.base import AbstractUnits


class Path(AbstractBipartite):
    r"""The model a fraction ``beta`` of the way from ``base`` to ``model``.

    .. math:: E_\beta(x) = (1 - \beta)\, E_0(x) + \beta\, E_1(x)

    in nats: at 0 it *is* the base, at 1 the model. ``base`` is an `harmonium.energy.independent.Independent` of the
    model's layers or an earlier model of the same shape, and ``beta`` one number for all rows or one per row (shape
    ``(*batch,)``), so that a batch can stand at many points of the path at once. Every method of a model works, and
    ``sweep(..., beta=b)`` tempers the whole of it as it does any model; :meth:`at` gives the same path at another
    point.

    Raises `SettingError` when the two ends have not the same layers. Source: annealed importance sampling, Neal
    (2001), the geometric path; the chapter's evaluation section.

    >>> import numpy as np
    >>> from harmonium.energy.independent import Independent
    >>> from harmonium.energy.rbm import RBM
    >>> rbm = RBM.from_arrays(np.ones((3, 2)), np.zeros(3), np.zeros(2))
    >>> path = Path(Independent(rbm.units), rbm)
    >>> float(path.at(0.25).energy((np.ones(3), np.ones(2))))  # a quarter of -6
    -1.5
    """

    base: AbstractLayered
    model: AbstractLayered
    beta: Float[Array, "*batch"]

    def __init__(self, base: AbstractLayered, model: AbstractLayered, beta: ArrayLike = 1.0):
        ends = [_layers(end) for end in (base, model)]
        if ends[0] != ends[1] or not isinstance(model, AbstractLayered):
            raise SettingError(
                f"a path runs between two machines of the same layers, got {ends[0]} and {ends[1]}; pass a base of the "
                "model's shape, e.g. Independent(model.units)"
            )
        self.base, self.model = base, model
        self.beta = beta if hasattr(beta, "dtype") else np.asarray(beta, model.units[0].bias.dtype)  # pyright: ignore[reportAttributeAccessIssue]

    @classmethod
    def from_arrays(cls, base: AbstractLayered, model: AbstractLayered, beta: ArrayLike = 1.0) -> Path:
        """The path itself: its parameters are its two ends and the point between them."""
        return cls(base, model, beta)

    def parameters(self) -> dict[str, Any]:
        """The arguments of :meth:`from_arrays`."""
        return {"base": self.base, "model": self.model, "beta": self.beta}

    def at(self, beta: ArrayLike) -> Path:
        """This path at another point, one for all rows or one per row."""
        return Path(self.base, self.model, beta)

    @property
    def units(self) -> tuple[AbstractUnits, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The layers of the model; what they feel at this point of the path is :meth:`field`."""
        return self.model.units

    @property
    def couplings(self) -> tuple[eqx.Module, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The couplings of the model."""
        return self.model.couplings

    @property
    def observed(self) -> tuple[int, ...]:
        return self.model.observed

    @property
    def sides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.model.sides

    def energy(self, configuration: Layers) -> Float[Array, "*batch"]:
        model = self.model.energy(configuration)
        return (1 - self.beta) * self.base.energy(configuration) + self.beta * model

    def field(self, layer: int, configuration: Configuration) -> Float[Array, "*batch n"]:
        beta = jnp.expand_dims(jnp.asarray(self.beta), -1)
        base, model = (end.field(layer, configuration) for end in (self.base, self.model))
        return (1 - beta) * base + beta * model

    def marginal_energy(self, side: int, layers: Layers) -> Float[Array, "*batch"]:
        r"""Energy of one side at this point, the other side summed out, in nats.

        The sum is over the joint at this point, :math:`-\log \sum_y e^{-E_\beta(x, y)}`; it is not the mixture of
        the marginal energies of the ends.
        """
        configuration = self.model.spread(side, layers)
        base, model = (
            sum(end.units[index].base_energy(configuration[index]) for index in self.sides[side])
            for end in (self.base, self.model)
        )
        total = (1 - self.beta) * base + self.beta * model
        for index in self.sides[1 - side]:
            total = total - self.units[index].log_partition(self.field(index, configuration))
        return jnp.asarray(total)

    def log_weight(
        self, side: int, layers: Layers, beta: Float[Array, "*points"] | float
    ) -> Float[Array, "*batch"]:
        r"""Log importance weight of one side, drawn at this point, at another point ``beta``, in nats.

        .. math:: F_{\beta_0}(x) - F_{\beta_1}(x)
            = (\beta_1 - \beta_0) \sum_{l \in \text{side}} (E_{0,l} - E_{1,l})(x^l)
            + \sum_{m \notin \text{side}} A_m(f_m + (\beta_1 - \beta_0) g_m) - A_m(f_m)

        with :math:`f` the field at this point and :math:`g` the difference of the fields of the two ends. Written
        with differences, it loses nothing to rounding however close the points are and however large the energies.
        """
        configuration = self.model.spread(side, layers)
        step = beta - self.beta
        weight = step * sum(
            self.base.units[index].base_energy(configuration[index])
            - self.model.units[index].base_energy(configuration[index])
            for index in self.sides[side]
        )
        for index in self.sides[1 - side]:
            base, model = (end.field(index, configuration) for end in (self.base, self.model))
            change = jnp.expand_dims(jnp.asarray(step), -1) * (model - base)
            weight = weight + self.units[index].log_partition_change(self.field(index, configuration), change)
        return jnp.asarray(weight)

    def pairwise(self) -> tuple[Float[Array, "n n"], Float[Array, " n"]]:
        if np.ndim(self.beta):
            raise SettingError(
                f"a path at one point for each of {np.shape(self.beta)} rows is many machines; use path.at(beta) with "
                "one number"
            )
        ends = self.base.pairwise(), self.model.pairwise()
        coupling, bias = (
            (1 - self.beta) * base + self.beta * model for base, model in zip(*ends, strict=True)
        )
        return coupling, bias

    def split(self, held: bool) -> Split:
        return self.model.split(held)

    def from_centred(self, offsets: Configuration) -> Path:
        return Path(self.base.from_centred(offsets), self.model.from_centred(offsets), self.beta)

    def to_centred(self, offsets: Configuration) -> Path:
        return Path(self.base.to_centred(offsets), self.model.to_centred(offsets), self.beta)


def _layers(model: Any) -> str:
    """The layers of a machine in words."""
    if not isinstance(model, AbstractLayered):
        return f"a {type(model).__name__}"
    return " - ".join(f"{units.size} {units.kind}" for units in model.units)
