"""Exact inference where every hidden layer is independent given the data."""

from __future__ import annotations

from jaxtyping import Array, Float

from harmonium.energy.base import AbstractBipartite, AbstractEnergyModel, as_bipartite
from harmonium.errors import SettingError
from harmonium.inference.base import AbstractInference
from harmonium.numerics.random import Noise
from harmonium.typing import Batch, Configuration


class Exact(AbstractInference):
    r"""The free energy of the data: hidden units are summed out in closed form.

    :math:`\nabla F(v) = \mathrm{E}_{p(h \mid v)}[\nabla E(v, h)]`, so the gradient of :meth:`energy` is the exact
    positive phase. Raises `SettingError` for a model with layers that are neither observed nor next to observed ones.
    """

    def energy(self, noise: Noise, model: AbstractEnergyModel, batch: Batch) -> Float[Array, " rows"]:
        return self._checked(model).marginal_energy(0, (batch.x,))

    def means(self, noise: Noise, model: AbstractEnergyModel, batch: Batch) -> Configuration:
        self._checked(model)
        visible = batch.x
        hidden = model.units[1].mean(model.field(1, (visible, model.units[1].natural())))
        return visible, hidden

    @staticmethod
    def _checked(model: AbstractEnergyModel) -> AbstractBipartite:
        bipartite = as_bipartite(model, "exact inference")
        if bipartite.sides != (model.observed, (1,)):
            raise SettingError(
                f"exact inference needs hidden units that are independent given the data; a {type(model).__name__} "
                "has others"
            )
        return bipartite
