"""Mode-assisted training: now and then the ground state stands for the model's mean."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from harmonium.energy.base import AbstractEnergyModel, check_two_valued
from harmonium.errors import SettingError
from harmonium.modes.base import AbstractModeSolver
from harmonium.modes.names import build_solver
from harmonium.numerics.random import Noise, uniform
from harmonium.numerics.whole import is_number, whole_number
from harmonium.rules.base import (
    AbstractAdaptiveRule,
    AbstractPhasedRule,
    RuleInfo,
)
from harmonium.rules.contrastive import Contrastive
from harmonium.samplers.gibbs import Gibbs
from harmonium.typing import Batch, Configuration, Step, Words

_SEARCH = 0x4D0DE
"""Folded into an update's noise: the words of a search, which shares no counter with the chains."""


def _checked_base(base: Any) -> AbstractPhasedRule:
    if not isinstance(base, AbstractPhasedRule):
        what = base.__name__ if isinstance(base, type) else type(base).__name__
        raise SettingError(
            f"ModeAssisted assists a rule of two phases, got {what}; pass one, such as hm.CD(1) or "
            "hm.PCD(sampler=hm.ParallelTempering(rungs=10))"
        )
    return base


def _checked_solver(solver: str | AbstractModeSolver) -> AbstractModeSolver:
    built = build_solver(solver)
    if not built.traceable:
        raise SettingError(
            f"the solver {type(built).__name__} runs outside the compiled program of an update; train with a solver "
            "that does not, such as solver='descent'"
        )
    return built


def _checked_steps(steps: SupportsIndex | None) -> int | None:
    if steps is None:
        return None
    return whole_number(steps, "baseline_steps must be a whole number of at least one sweep", "pass 720")


def _as_float(value: Any) -> Any:
    """A plain number, so that settings say the same whatever kind was given; anything else is refused later."""
    return float(value) if is_number(value) else value


def _is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


class ModeAssistedState(eqx.Module):
    """The state of the base rule; how many updates have taken a mode, and energy and push of the last that did.

    Energy and push are None for the unassisted baseline, and zero before the first mode.
    """

    base: Any
    taken: Int[Array, ""]
    energy: Float[Array, ""] | None
    push: Float[Array, ""] | None


class ModeAssisted(AbstractAdaptiveRule):
    r"""A rule whose negative phase is, with a probability that rises along the run, the model's mode alone.

    At update ``n`` of ``N`` a coin comes up with probability

    .. math:: P(n) = P_\max\, \sigma(a\, n / N + b)

    (``probability``, ``steepness``, ``offset``). Where it does not, the update is that of ``base``. Where it does, the
    surrogate is :math:`s\,\bigl(\langle E \rangle_{data} - E(x^*)\bigr)`: the mean energy with the data clamped, by the
    base rule's own positive phase, minus the energy of the ground state :math:`x^*` that ``solver`` finds, times the
    push

    .. math:: s = \max\Bigl(0,\; c\,\frac{E(\bar x) - E(x^*)}{1 + \#\text{parameters}}\Bigr)

    with :math:`\bar x` every unit in the middle of its range, and ``push_scale`` for ``c``. :math:`E(\bar x)` is the
    mean energy of all states, so that :math:`E(x^*) - E(\bar x)` is the energy of the ground state in units of
    :math:`\pm 1` without its constant, :math:`E_0 + \frac12 \sum b + \frac14 \sum W` where units are 0 or 1. The push
    is zero while weights are and grows with them. ``push`` is a constant one instead.

    The coin is of the step and not of a member: all members of an ensemble look for their modes at the same updates,
    and the search stays a branch that is taken then only. A member trained alone has other coins. Persistent chains,
    centring offsets and what a sampler learns move at every update, at those of a mode too. A run that is gone on with
    beyond its horizon counts ``n / N`` of the new one. The solver must be one that can be compiled; any that is not
    nearly always near the optimum does harm, because states that are no modes push for ever.

    ``baseline_steps`` makes the unassisted rule of equal cost instead: no mode is looked for, and at the updates where
    it would have been, chains make that many Gibbs sweeps.

    Info: ``mode_steps``, the share of updates that took a mode, and ``mode_energy`` and ``mode_push``, in nats, zero at
    all others: divide their means by that of ``mode_steps``.

    Raises `SettingError` for a base rule without two phases, settings out of range, a solver that cannot be compiled or
    cannot serve the model, and for stacks of models. Source: Manukian and Di Ventra, "Mode-assisted joint training of
    deep Boltzmann machines" (2021), equations 5 and 6. Equation 5 prints the mode of the data in the place of their
    mean, with which training diverges; the scale of the push is not printed there, :math:`c = 1/4` with the
    :math:`(n_v + 1)(n_h + 1)` of an RBM is that of a port of the authors' program, and the number of parameters, which
    is the same for an RBM, is our choice for other machines.

    >>> from harmonium.rules.contrastive import CD
    >>> ModeAssisted(CD(1)).probability
    0.1
    """

    base: AbstractPhasedRule = eqx.field(converter=_checked_base)
    solver: AbstractModeSolver = eqx.field(default="descent", converter=_checked_solver)  # pyright: ignore[reportAssignmentType]
    probability: float = eqx.field(default=0.1, converter=_as_float)
    steepness: float = eqx.field(default=20.0, converter=_as_float)
    offset: float = eqx.field(default=-6.0, converter=_as_float)
    push_scale: float = eqx.field(default=0.25, converter=_as_float)
    push: float | None = eqx.field(default=None, converter=_as_float)
    baseline_steps: int | None = eqx.field(default=None, converter=_checked_steps)

    def __check_init__(self):
        if not _is_finite(self.probability) or not 0 <= self.probability <= 1:
            raise SettingError(
                f"probability must be a number from 0 to 1, got {self.probability!r}; pass e.g. 0.1"
            )
        for name, typical in (("steepness", 20), ("offset", -6)):
            if not _is_finite(getattr(self, name)):
                raise SettingError(f"{name} must be a number, got {getattr(self, name)!r}; pass {typical}")
        for name, value in (("push_scale", self.push_scale), ("push", self.push)):
            if value is not None and (not _is_finite(value) or not value >= 0):
                raise SettingError(f"{name} must be a number of at least 0, got {value!r}; pass e.g. 0.1")
        if self.baseline_steps is not None and not (
            isinstance(self.base, Contrastive) and isinstance(self.base.sampler, Gibbs)
        ):
            raise SettingError(
                f"baseline_steps={self.baseline_steps} are Gibbs sweeps, and the base rule makes none; use it with "
                "hm.CD() or hm.PCD()"
            )

    def init(self, words: Words, model: AbstractEnergyModel, batch: Batch) -> ModeAssistedState:
        if self.baseline_steps is None:
            self.solver.check(model)
            check_two_valued(model, "mode-assisted training")
        base, none = self.base.init(words, model, batch), jnp.int32(0)
        if self.baseline_steps is not None:
            return ModeAssistedState(base, none, None, None)
        zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(model)))
        return ModeAssistedState(base, none, zero, zero)

    def loss(
        self, model: AbstractEnergyModel, step: Step, state: ModeAssistedState, batch: Batch
    ) -> tuple[Float[Array, ""], tuple[ModeAssistedState, RuleInfo]]:
        coin = self.coin(step)
        taken = state.taken + coin
        if self.baseline_steps is not None:
            longer = self._longer()
            found = jax.lax.cond(
                coin,
                lambda model: longer.phases(model, step, state.base, batch),
                lambda model: self.base.phases(model, step, state.base, batch),
                model,
            )
            info = {**found.info, "mode_steps": coin.astype(found.positive.dtype)}
            after = ModeAssistedState(found.state, taken, None, None)
            return found.positive - found.negative, (after, info)
        assert state.energy is not None
        assert state.push is not None
        found = self.base.phases(model, step, state.base, batch)
        frozen = jax.lax.stop_gradient(model)
        words = Noise.of(step.key).fold(_SEARCH).words
        # Only the search stands in the branch: what is differentiated is cheap, and the same program either way.
        mode = jax.lax.cond(
            coin,
            lambda frozen: self.solver.search(words, frozen)[0],
            lambda frozen: tuple(jnp.zeros(units.size, units.bias.dtype) for units in frozen.units),
            frozen,
        )
        energy = model.energy(mode)
        push = self.push_of(frozen, jax.lax.stop_gradient(energy))
        surrogate = jnp.where(coin, push, 1.0) * found.positive - jnp.where(
            coin, push * energy, found.negative
        )
        found_energy, nothing = jax.lax.stop_gradient(energy), jnp.zeros_like(energy)
        info = {
            **found.info,
            "mode_steps": coin.astype(energy.dtype),
            "mode_energy": jnp.where(coin, found_energy, nothing),
            "mode_push": jnp.where(coin, push, nothing),
        }
        after = ModeAssistedState(
            found.state,
            taken,
            jnp.where(coin, found_energy, state.energy),
            jnp.where(coin, push, state.push),
        )
        return surrogate, (after, info)

    def probability_at(
        self, index: Int[Array | np.ndarray, "*batch"] | int, horizon: Int[Array, ""] | int
    ) -> Float[Array, "*batch"]:
        """The probability of a mode at update ``index`` of ``horizon``.

        >>> from harmonium.rules.contrastive import CD
        >>> [round(float(ModeAssisted(CD(1)).probability_at(n, 100)), 4) for n in (0, 30, 100)]
        [0.0002, 0.05, 0.1]
        """
        share = jnp.asarray(index) / jnp.asarray(horizon)
        return self.probability * jax.nn.sigmoid(self.steepness * share + self.offset)

    def coin(self, step: Step) -> Bool[Array, ""]:
        """Whether this update takes the mode: the same for all members of an ensemble."""
        words, _ = Noise.of(step.shared_key).pair(())
        return uniform(words) < self.probability_at(step.index, step.horizon)

    def push_of(self, model: AbstractEnergyModel, energy: Float[Array, ""]) -> Float[Array, ""]:
        """The scale of a mode's update, from the energy of the mode in nats."""
        if self.push is not None:
            return jnp.full_like(energy, self.push)
        middle = tuple(
            jnp.full(units.size, sum(units.support) / 2, units.bias.dtype) for units in model.units
        )
        parameters = sum(int(leaf.size) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_array)))
        return jnp.maximum(self.push_scale * (model.energy(middle) - energy) / (1 + parameters), 0)

    def _longer(self) -> AbstractPhasedRule:
        assert isinstance(self.base, Contrastive)
        assert isinstance(self.base.sampler, Gibbs)
        assert self.baseline_steps is not None
        return dataclasses.replace(self.base, sampler=Gibbs(self.baseline_steps, self.base.sampler.clamp))

    @property
    def chains_count(self) -> int | None:
        """How many persistent chains the base rule keeps."""
        return getattr(self.base, "chains_count", None)

    @property
    def adapts(self) -> bool:
        return isinstance(self.base, AbstractAdaptiveRule) and self.base.adapts

    @property
    def changes_shapes(self) -> bool:
        return isinstance(self.base, AbstractAdaptiveRule) and self.base.changes_shapes

    def between(
        self, words: Words, model: AbstractEnergyModel, state: ModeAssistedState
    ) -> ModeAssistedState:
        if not isinstance(self.base, AbstractAdaptiveRule):
            return state
        return dataclasses.replace(state, base=self.base.between(words, model, state.base))

    def offsets(self, state: ModeAssistedState) -> Configuration | None:
        return self.base.offsets(state.base)

    def chains(self, state: ModeAssistedState) -> Configuration | None:
        return self.base.chains(state.base)
