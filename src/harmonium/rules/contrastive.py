"""Contrastive rules: an expectation with the data clamped minus one under the model."""

from __future__ import annotations

from typing import Any, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.couplings.short import with_short_products
from harmonium.energy.guided import AbstractGuided, unguided
from harmonium.energy.stack import AbstractStack
from harmonium.errors import SettingError
from harmonium.inference.base import AbstractInference, clamp_of
from harmonium.inference.clamped import ClampedGibbs, are_coupled, clamped_chains
from harmonium.inference.mean_field import MeanField
from harmonium.inference.names import build_inference
from harmonium.inference.stacked import check_positive_phase, passed_up, positive_phase
from harmonium.numerics.named import is_name
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import whole_number
from harmonium.rules.base import AbstractAdaptiveRule, AbstractPhasedRule, Phases, RuleInfo
from harmonium.rules.centring import check_centring, first_offsets, moved_offsets, weighted_mean
from harmonium.samplers.base import (
    AbstractAdaptiveSampler,
    AbstractPathSampler,
    AbstractSampler,
    AbstractSamplerState,
    resting_particles,
)
from harmonium.samplers.gibbs import Gibbs, GibbsState
from harmonium.typing import Batch, Configuration, Step, Words

PRECISIONS = ("float32", "bfloat16")

RESTART_SWEEPS = 20
"""Clamped sweeps from which chains of coupled hidden units start at the data where the inference gives no start."""

# Streams of a rule; the lower ones belong to its sampler.
_COMPLETION_STREAM = 101
_INFERENCE_STREAM = 102


def _checked_chains(count: SupportsIndex | None) -> int | None:
    if count is None:
        return None
    return whole_number(
        count, "persistent training needs a whole number of chains, at least one chain", "pass e.g. 100"
    )


def _checked_burn_in(sweeps: SupportsIndex) -> int:
    return whole_number(sweeps, "burn_in must be a whole number of at least 0", "pass e.g. 20", least=0)


def _checked_final_steps(steps: SupportsIndex | None) -> int | None:
    if steps is None:
        return None
    return whole_number(steps, "final_steps must be a whole number of at least 1", "pass e.g. 10")


class ContrastiveState(eqx.Module):
    """Persistent chains (None when chains restart from the data) and centring offsets (None when not centred)."""

    sampler: AbstractSamplerState | None
    offsets: Configuration | None


class Contrastive(AbstractAdaptiveRule, AbstractPhasedRule):
    r"""Difference of two expectations of the energy's gradient, one per phase.

    The surrogate is :math:`\frac{1}{\sum w}\sum_t w_t F(v_t) - \frac{1}{M}\sum_m F(\tilde v_m)` with chains
    :math:`\tilde v` held fixed; each phase is averaged over its own count, and hidden units enter as probabilities in
    both. Where hidden units cannot be summed out, the energies of ``inference`` stand for the first mean, and energies
    of whole chains :math:`E(\tilde v, \tilde h)` for the second. ``persistent`` chains go on from one update to the
    next (SML); otherwise they restart from the batch (CD), which is the gradient of no function.

    With ``centred`` the trainer takes the gradient in coordinates centred at the data mean of the visible layer and a
    running mean (rate ``offset_rate``) of the hidden ones. That changes the path of training, never the distribution
    of a model.

    With ``final_steps`` chains that restart make more and more sweeps, from ``sampler.steps`` of the first updates to
    so many of the last ones, every number for as many updates: at update :math:`n` of :math:`N` they are
    :math:`k_0 + \lfloor (k_1 - k_0 + 1)\, n / N \rfloor`.

    With ``precision`` "bfloat16" the products of sweeps and energies read weights rounded to sixteen bits; weights,
    gradients and sums keep thirty-two. That pays on processors with instructions for it.

    Raises `SettingError` for fewer than one chain, for a precision of another name, and for ``final_steps`` that are
    fewer than the first or not of sweeps that restart. Source: the chapter's algorithms CD-k and SML. Where it prints
    :math:`\hat h v^\top` and :math:`\tilde v \tilde h^\top` both terms are visible by hidden; where
    :math:`\Delta_c \leftarrow \Delta_b - \dots` it is :math:`\Delta_c - \dots`; there is a step size.
    """

    sampler: AbstractSampler
    inference: AbstractInference
    persistent: bool
    chains_count: int | None = eqx.field(default=None, converter=_checked_chains)
    centred: bool = True
    offset_rate: float = 0.01
    burn_in: int = eqx.field(default=20, converter=_checked_burn_in)
    precision: str = "float32"
    final_steps: int | None = eqx.field(default=None, converter=_checked_final_steps)

    def __check_init__(self):
        check_centring(self.centred, self.offset_rate)
        if self.final_steps is not None:
            if self.persistent or not isinstance(self.sampler, Gibbs):
                raise SettingError(
                    f"final_steps={self.final_steps} are of Gibbs sweeps that restart from the data, as those of hm.CD "
                    "(--sampler cd); leave them out"
                )
            if self.final_steps < self.sampler.steps:
                raise SettingError(
                    f"final_steps={self.final_steps} are fewer than the steps={self.sampler.steps} of the first "
                    "update; pass at least as many"
                )
        if not is_name(self.precision, PRECISIONS):
            raise SettingError(
                f"no precision of products is called {self.precision!r}; choose one of {', '.join(PRECISIONS)}"
            )

    def init(self, words: Words, model: AbstractEnergyModel, batch: Batch) -> ContrastiveState:
        check_positive_phase(self.inference, model)
        model = self._as_computed(model)
        noise = Noise.of(words)
        offsets = first_offsets(model, batch) if self.centred else None
        sampler = None
        if self.persistent:
            particles = resting_particles(noise, model, self.chains_count or batch.x.shape[0])
            burn_in = noise.stream(_COMPLETION_STREAM)
            particles = jax.lax.fori_loop(
                0, self.burn_in, lambda i, now: model.sweep(burn_in.at(i), now), particles
            )
            sampler = self.sampler.init(words, model, particles)
            if isinstance(self.sampler, AbstractPathSampler):
                sampler = self.sampler.rebased(sampler, model, weighted_mean(batch.x, batch.weight))
        return ContrastiveState(sampler, offsets)

    def loss(
        self, model: AbstractEnergyModel, step: Step, state: ContrastiveState, batch: Batch
    ) -> tuple[Float[Array, ""], tuple[ContrastiveState, RuleInfo]]:
        found = self.phases(model, step, state, batch)
        return found.positive - found.negative, (found.state, found.info)

    def phases(self, model: AbstractEnergyModel, step: Step, state: ContrastiveState, batch: Batch) -> Phases:
        noise = Noise.of(step.key)
        model = self._as_computed(model)
        frozen = jax.lax.stop_gradient(model)
        posterior = positive_phase(self.inference, noise.stream(_INFERENCE_STREAM), model, batch)
        if self.persistent:
            start, chain_weight = state.sampler, None
        else:
            start, chain_weight = self._restart(noise, step, frozen, batch, posterior.means), batch.weight
        sampled, info = self._moved(noise, step, frozen, start)
        if isinstance(self.sampler, AbstractAdaptiveSampler):
            sampled = self.sampler.adapt(sampled, info)
        positive = weighted_mean(posterior.energy, batch.weight)
        negative = weighted_mean(model.chain_energy(sampled.particles), chain_weight)
        offsets = moved_offsets(state.offsets, posterior.means, batch.weight, self.offset_rate)
        after = ContrastiveState(sampled if self.persistent else None, offsets)
        return Phases(positive, negative, after, {**info, **posterior.info})

    def steps_at(self, step: Step) -> Int[Array, ""] | int:
        """Sweeps of the update that is made now, where the sampler is Gibbs."""
        assert isinstance(self.sampler, Gibbs)
        if self.final_steps is None:
            return self.sampler.steps
        more = self.final_steps - self.sampler.steps
        past = step.index.astype(jnp.float32) / step.horizon.astype(jnp.float32)
        return self.sampler.steps + jnp.clip((past * (more + 1)).astype(jnp.int32), 0, more)

    def _moved(
        self, noise: Noise, step: Step, model: AbstractEnergyModel, start: Any
    ) -> tuple[Any, dict[str, Array]]:
        if self.final_steps is None or not isinstance(self.sampler, Gibbs):
            return self.sampler.step(noise, model, start)
        return GibbsState(self.sampler.swept(noise, model, start.particles, self.steps_at(step))), {}

    def _as_computed(self, model: AbstractEnergyModel) -> AbstractEnergyModel:
        return with_short_products(model) if self.precision == "bfloat16" else model

    @property
    def adapts(self) -> bool:
        return self.persistent and isinstance(self.sampler, AbstractAdaptiveSampler)

    @property
    def changes_shapes(self) -> bool:
        return isinstance(self.sampler, AbstractAdaptiveSampler) and self.sampler.changes_shapes

    def between(self, words: Words, model: AbstractEnergyModel, state: ContrastiveState) -> ContrastiveState:
        if not isinstance(self.sampler, AbstractAdaptiveSampler) or state.sampler is None:
            return state
        return ContrastiveState(self.sampler.between(words, model, state.sampler), state.offsets)

    def offsets(self, state: ContrastiveState) -> Configuration | None:
        return state.offsets

    def chains(self, state: ContrastiveState) -> Configuration | None:
        return None if state.sampler is None else state.sampler.particles

    def _restart(
        self, noise: Noise, step: Step, model: AbstractEnergyModel, batch: Batch, means: Configuration
    ) -> AbstractSamplerState:
        """Chains at the data: observed units as given, hidden ones drawn given them.

        Where layers have mean-field ``means`` they start from one clamped sweep there: the layers of even number drawn
        from the factorial posterior, those of odd number given them. Otherwise hidden units that are coupled are moved
        by `RESTART_SWEEPS` clamped sweeps from rest, or by as many as the inference makes where it samples. In a stack
        the code that a level draws is where the next one starts.
        """
        if isinstance(model, AbstractStack):
            return self.sampler.init(
                step.key, model, passed_up(noise.stream(_COMPLETION_STREAM), model, batch)
            )
        machine, own = unguided(model), noise.stream(_COMPLETION_STREAM)
        if isinstance(self.inference, MeanField) and isinstance(machine, AbstractBipartite):
            sweeps, given = 1, means[: len(machine.units)]
            particles = machine.sweep(own.at(0), given, clamp=clamp_of(machine, batch))
        else:
            sweeps = self.inference.sweeps if isinstance(self.inference, ClampedGibbs) else RESTART_SWEEPS
            particles = clamped_chains(own, machine, batch, sweeps if are_coupled(machine) else 1)
        if isinstance(model, AbstractGuided):
            codes = Batch(x=model.proposal(particles), weight=batch.weight)
            particles = (*particles, *passed_up(own.at(sweeps), model.guide, codes))
        return self.sampler.init(step.key, model, particles)


def CD(
    steps: SupportsIndex = 1,
    *,
    final_steps: SupportsIndex | None = None,
    inference: str | AbstractInference = "exact",
    inference_sweeps: SupportsIndex | None = None,
    centred: bool = True,
    offset_rate: float = 0.01,
    precision: str = "float32",
) -> Contrastive:
    """Contrastive divergence: ``steps`` sweeps from the data at every update (chapter, algorithm CD-k).

    With ``final_steps`` they grow from ``steps`` at the start of a run to so many at its end, every number for as long:
    ``CD(1, final_steps=10)`` makes 1 sweep in the first tenth of the updates and 10 in the last, as the recipe of deep
    Boltzmann machines does. A run that goes further after its end starts its new stretch where that stands on the way.

    ``inference``, ``inference_sweeps`` and ``precision`` are as in `PCD`.

    >>> CD(steps=3).persistent
    False
    """
    positive = build_inference(inference, inference_sweeps)
    return Contrastive(
        Gibbs(steps),
        positive,
        persistent=False,
        centred=centred,
        offset_rate=offset_rate,
        precision=precision,
        final_steps=final_steps,
    )


def PCD(
    steps: SupportsIndex | None = None,
    chains: SupportsIndex = 100,
    *,
    sampler: AbstractSampler | None = None,
    inference: str | AbstractInference = "exact",
    inference_sweeps: SupportsIndex | None = None,
    centred: bool = True,
    offset_rate: float = 0.01,
    burn_in: SupportsIndex = 20,
    precision: str = "float32",
) -> Contrastive:
    """Persistent contrastive divergence, also stochastic maximum likelihood (chapter, algorithm SML).

    ``chains`` are the model's own and independent of the batch size; each update moves them ``steps`` sweeps (1 unless
    given). The step size must stay small enough for them to follow the model. ``sampler`` moves them instead, one step
    at every update, such as ``hm.ParallelTempering(rungs=10)``, which has ``steps`` of its own.

    ``inference`` is the positive phase: "exact" (hidden units summed out), or, for hidden units that are coupled to
    each other and too many to enumerate, "mean-field" or "gibbs", with ``inference_sweeps`` of their own.
    ``precision`` is that of the products, "float32" or "bfloat16"; see `Contrastive`.

    >>> PCD(steps=1, chains=256).chains_count
    256
    """
    if sampler is not None and steps is not None:
        raise SettingError(
            f"steps={steps} belongs to Gibbs sampling; give them to the {type(sampler).__name__} instead"
        )
    return Contrastive(
        Gibbs(1 if steps is None else steps) if sampler is None else sampler,
        build_inference(inference, inference_sweeps),
        persistent=True,
        chains_count=chains,
        centred=centred,
        offset_rate=offset_rate,
        burn_in=burn_in,
        precision=precision,
    )
