"""Exact inference where every hidden layer is independent given the data."""

from __future__ import annotations

from jaxtyping import Array, Float

from harmonium.energy.base import AbstractBipartite
from harmonium.errors import SettingError
from harmonium.inference.base import AbstractInference
from harmonium.numerics.random import Noise
from harmonium.typing import Batch, Configuration


class Exact(AbstractInference):
    r"""The free energy of the data: hidden units are summed out in closed form.

    :math:`\nabla F(v) = \mathrm{E}_{p(h \mid v)}[\nabla E(v, h)]`, so the gradient of :meth:`energy` is the exact
    positive phase. Raises `SettingError` for a model with layers that are neither observed nor next to observed ones.
    """

    def energy(self, noise: Noise, model: AbstractBipartite, batch: Batch) -> Float[Array, " rows"]:
        self._check(model)
        return model.marginal_energy(0, (batch.x,))

    def means(self, noise: Noise, model: AbstractBipartite, batch: Batch) -> Configuration:
        self._check(model)
        visible = batch.x
        hidden = model.units[1].mean(model.field(1, (visible, model.units[1].natural())))
        return visible, hidden

    @staticmethod
    def _check(model: AbstractBipartite) -> None:
        if not isinstance(model, AbstractBipartite) or model.sides != (model.observed, (1,)):
            raise SettingError(
                f"exact inference needs hidden units that are independent given the data; a {type(model).__name__} "
                "has others"
            )
