"""The exact gradient of the log-likelihood, for models small enough to be summed out."""

from __future__ import annotations

from typing import SupportsIndex

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.enumeration import log_partition_of
from harmonium.energy.guided import AbstractGuided
from harmonium.energy.stack import AbstractStack
from harmonium.errors import SettingError
from harmonium.inference.exact import Exact
from harmonium.inference.stacked import positive_phase
from harmonium.numerics.enumerate import check_bits
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import whole_number
from harmonium.rules.base import AbstractPhasedRule, Phases, RuleInfo
from harmonium.rules.centring import check_centring, first_offsets, moved_offsets, weighted_mean
from harmonium.typing import Batch, Configuration, Step, Words

EXACT_GRADIENT_BITS = 20
"""Most two-valued units that every update enumerates unless the caller allows more."""


def _checked_budget(bits: SupportsIndex) -> int:
    return whole_number(bits, "bit_budget must be a whole number of at least 0", least=0)


class ExactGradientState(eqx.Module):
    """Centring offsets (None when not centred)."""

    offsets: Configuration | None


class ExactGradient(AbstractPhasedRule):
    r"""Maximum likelihood without a sample.

    The surrogate is minus the mean log-likelihood of the batch itself, :math:`\frac{1}{\sum w}\sum_t w_t F(v_t) + \log
    Z`, with :math:`\log Z` by enumeration at every update: its gradient is
    :math:`\mathrm{E}_{model}[\partial_\theta(-E)] - \mathrm{E}_{data}[\partial_\theta(-E)]`. It is meant for small
    models and large batches, up to all rows at once: what noise it has comes from the choice of rows. For a machine
    without hidden units the surrogate is convex. The levels of a stack are trained jointly, each on the means that are
    passed up to it.

    Raises `BudgetError` when more than ``bit_budget`` units would be enumerated. Source: the chapter's log-likelihood
    and its derivative; where it prints :math:`\log \sum_h` after :math:`\frac1Z` and a derivative of ``Z``, the right
    form has :math:`-n \log Z`.

    >>> ExactGradient().centred
    True
    """

    centred: bool = True
    offset_rate: float = 0.01
    bit_budget: int = eqx.field(default=EXACT_GRADIENT_BITS, converter=_checked_budget)

    def __check_init__(self):
        check_centring(self.centred, self.offset_rate)

    def init(self, words: Words, model: AbstractEnergyModel, batch: Batch) -> ExactGradientState:
        if isinstance(model, AbstractGuided):
            raise SettingError(
                "an exact gradient needs no chains and no guide; pass the machine alone, guided.machine"
            )
        for part in _parts(model):
            check_bits(
                part.split(held=False).bits,
                self.bit_budget,
                f"the exact gradient of this {type(part).__name__}",
                "train with hm.PCD() (--sampler pcd), which estimates it",
            )
        return ExactGradientState(first_offsets(model, batch) if self.centred else None)

    def loss(
        self, model: AbstractEnergyModel, step: Step, state: ExactGradientState, batch: Batch
    ) -> tuple[Float[Array, ""], tuple[ExactGradientState, RuleInfo]]:
        found = self.phases(model, step, state, batch)
        return found.positive - found.negative, (found.state, found.info)

    def phases(
        self, model: AbstractEnergyModel, step: Step, state: ExactGradientState, batch: Batch
    ) -> Phases:
        if len(model.units) == 1:
            return Phases(_energy_of_moments(model, batch), -log_partition_of(model), state, {})
        posterior = positive_phase(Exact(self.bit_budget), Noise.of(step.key), model, batch)
        log_partition = sum((log_partition_of(part) for part in _parts(model)), jnp.zeros(()))
        positive = weighted_mean(posterior.energy, batch.weight)
        offsets = moved_offsets(state.offsets, posterior.means, batch.weight, self.offset_rate)
        return Phases(positive, -log_partition, ExactGradientState(offsets), {})

    def offsets(self, state: ExactGradientState) -> Configuration | None:
        return state.offsets

    def chains(self, state: ExactGradientState) -> Configuration | None:
        return None


def _parts(model: AbstractEnergyModel) -> tuple[AbstractEnergyModel, ...]:
    """The machines whose likelihoods are trained: the model, or the levels of a stack, each on what is passed up."""
    return model.levels if isinstance(model, AbstractStack) else (model,)


def _energy_of_moments(model: AbstractEnergyModel, batch: Batch) -> Float[Array, ""]:
    r"""Mean energy of rows without hidden units, :math:`-\frac12 \sum_{ij} C_{ij} M_{ij} - b^\top m`.

    Counts of binary rows are whole numbers, which float32 adds without an error; the mean of row energies would round
    at every row, and along the flat directions of a likelihood such errors move the maximum.
    """
    coupling, bias = model.pairwise()
    weight = jnp.ones(batch.x.shape[:1], batch.x.dtype) if batch.weight is None else batch.weight
    weighted = weight[:, None] * batch.x
    second = batch.x.T @ weighted / jnp.sum(weight)
    return -jnp.sum(coupling * second) / 2 - bias @ (jnp.sum(weighted, axis=0) / jnp.sum(weight))
