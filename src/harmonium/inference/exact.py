"""Exact inference: hidden units summed out."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.enumeration import hidden_means_of
from harmonium.energy.labels import label_units, with_labels
from harmonium.errors import BudgetError
from harmonium.inference.base import AbstractInference, Posterior
from harmonium.inference.clamped import are_coupled
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import whole_number
from harmonium.typing import Batch, Configuration


def _checked_budget(bits: int) -> int:
    return whole_number(bits, "bit_budget must be a whole number of at least 0", least=0)


class Exact(AbstractInference):
    r"""The free energy of the data: hidden units are summed out.

    :math:`\nabla F(v) = \mathrm{E}_{p(h \mid v)}[\nabla E(v, h)]`, so the gradient of the posterior's energy is the
    exact positive phase. Hidden units that are independent given the data cost nothing extra; where some are coupled
    to each other, their states are enumerated for every row. Raises `BudgetError` for more than ``2**bit_budget``.
    """

    bit_budget: int = eqx.field(default=12, converter=_checked_budget)

    def check(self, model: AbstractEnergyModel) -> None:
        bits = model.split(held=True).bits if are_coupled(model) else 0
        if bits > self.bit_budget:
            raise BudgetError(
                f"exact inference would enumerate 2**{bits} states of the hidden units for every row, but its budget "
                f"is {self.bit_budget} bits; use inference='mean-field' (--inference) or inference='gibbs' "
                "(--inference)"
            )

    def posterior(self, noise: Noise, model: AbstractEnergyModel, batch: Batch) -> Posterior:
        self.check(model)
        frozen = jax.lax.stop_gradient(model)
        given = batch.x
        if (labels := label_units(model)) is not None:
            # Labels that are not given at all are summed out; see `harmonium.energy.base`.
            if batch.label is None:
                hidden = hidden_means_of(frozen, given)
            else:
                label = labels.one_hot(batch.label)
                given = with_labels(given, label)
                hidden = _hidden_given(frozen, batch.x, label)
        elif len(model.units) == 1:
            hidden = ()
        elif len(model.units) == 2 and not are_coupled(model):
            hidden = (frozen.units[1].mean(frozen.field(1, (batch.x, frozen.units[1].natural()))),)
        else:
            hidden = hidden_means_of(frozen, batch.x)
        return Posterior(model.free_energy(given), (batch.x, *hidden), {})


def _hidden_given(model: AbstractEnergyModel, rows: Array, label: Array) -> Configuration:
    """Means of the hidden layers given rows and labels, and the labels."""
    if are_coupled(model):
        return hidden_means_of(model, with_labels(rows, label))
    return model.units[1].mean(model.field(1, (rows, model.units[1].natural(), label))), label
