"""Coupled adaptive simulated tempering: chains that walk through the temperatures, beside chains that stay at one."""

from __future__ import annotations

from typing import Any, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.independent import Independent
from harmonium.errors import SettingError
from harmonium.numerics.random import Noise, uniform
from harmonium.numerics.whole import is_number, whole_number
from harmonium.samplers.base import (
    AbstractAdaptiveSampler,
    AbstractPathSampler,
    AbstractSamplerState,
    SamplerInfo,
)
from harmonium.samplers.ladder import unit_updates
from harmonium.samplers.walk import (
    bias_at,
    check_base,
    check_schedule,
    checked_schedule,
    checked_steps,
    energy_difference,
    far_end,
    first_betas,
    first_bias,
    rungs_of,
    sweep_at,
)
from harmonium.typing import Configuration, Words

DECAYING = "decaying"

MOST_WALKERS = 1000
MOST_LEVELS = 10_000

_LEVEL_STREAM = 98
_COUPLING_STREAM = 99

_FLAT = 0.5
"""Levels are visited evenly when the least visited one has this share of the mean."""

_PASSAGES = 10
"""Walks from end to end without which an even walk says nothing: chains that stay where they began are even too."""

_PATIENCE = 10
"""Rounds, in squares of the number of levels, after which a walk that is not even has come apart from its weights."""


def _checked_ratio(ratio: SupportsIndex) -> int:
    return whole_number(
        ratio,
        "CAST needs a whole number of tempered chains for each chain, at least 1",
        "pass e.g. 10",
        most=MOST_WALKERS,
    )


def _checked_rungs(rungs: SupportsIndex) -> int:
    return whole_number(
        rungs,
        "a ladder needs a whole number of rungs, at least 2",
        "pass e.g. 100",
        least=2,
        most=MOST_LEVELS,
    )


class Weights(eqx.Module):
    """Weights of the levels, and what they are learned from.

    - ``log_weights``: ``g``, one number per level, the least of them 0; with a decaying gain they tend to ``log Z`` of
      the levels less the least of these.
    - ``gain``: nats that a round adds to the weight of a level while all are visited alike; it decays.
    - ``rounds``: rounds since learning began, or began again; it had made ``begun`` of them when ``gain`` last fell.
    - ``visits``, ``passages``: visits to each level, and walks from one end to the other, since then.
    - ``heading``: the end at which a replica was last: 1 for the model, -1 for the base, 0 for neither.
    """

    log_weights: Float[Array, " levels"]
    gain: Float[Array, ""]
    rounds: Int[Array, ""]
    begun: Int[Array, ""]
    visits: Int[Array, " levels"]
    passages: Int[Array, ""]
    heading: Int[Array, "replicas chains"]

    @classmethod
    def none(cls, levels: int, level: Int[Array, "replicas chains"], dtype: Any) -> Weights:
        """Before the first round."""
        return cls(
            log_weights=jnp.zeros(levels, dtype),
            gain=jnp.asarray(_first_gain(levels, level), dtype),
            rounds=jnp.int32(0),
            begun=jnp.int32(0),
            visits=jnp.zeros(levels, jnp.int32),
            passages=jnp.int32(0),
            heading=_ends(level, levels - 1),
        )

    def after(self, level: Int[Array, "replicas chains"], constant: float | None) -> Weights:
        """With one more round, after which replicas are at these levels; ``constant`` is the gain of the authors."""
        levels, dtype = len(self.visits), self.gain.dtype
        walkers = level.size - level.shape[1]
        # The chains at the model, one of each column, are no visitors.
        now = jnp.zeros_like(self.visits).at[level].add(1).at[0].add(-level.shape[1])
        ends = _ends(level, levels - 1)
        visits, passages = self.visits + now, self.passages + jnp.sum(ends * self.heading < 0)
        rounds = self.rounds + 1
        flat = jnp.min(visits) * levels >= _FLAT * jnp.sum(visits)
        settled = flat & (passages >= _PASSAGES)
        # As long as all before, and ten times as long as a free walk: what has not settled by then does not any more.
        lost = ~settled & (rounds - self.begun > self.begun + _PATIENCE * levels**2)
        first = _first_gain(levels, level)
        decayed = jnp.clip(jnp.where(settled, self.gain / 2, self.gain), 1 / rounds, first)
        raised = self.log_weights + (
            self.gain * (levels / walkers) * now if constant is None else jnp.log1p(constant * now)
        )
        return Weights(
            log_weights=(raised - jnp.min(raised)).astype(dtype),
            gain=jnp.where(lost, first, decayed).astype(dtype),
            rounds=jnp.where(lost, 0, rounds),
            begun=jnp.where(lost, 0, jnp.where(settled, rounds, self.begun)),
            visits=jnp.where(lost | settled, 0, visits),
            passages=jnp.where(lost | settled, 0, passages),
            heading=jnp.where(ends == 0, self.heading, ends),
        )


def _first_gain(levels: int, level: Int[Array, "replicas chains"]) -> float:
    """At most one nat for a level that is visited as often as all are, and for a single visit."""
    return min(1.0, (level.size - level.shape[1]) / levels)


def _ends(level: Int[Array, "replicas chains"], last: int) -> Int[Array, "replicas chains"]:
    return (level == 0).astype(jnp.int8) - (level == last).astype(jnp.int8)


class CASTState(AbstractSamplerState):
    """Chains at the model and tempered ones, where these are, and what is known of the levels.

    - ``replicas``: one array per layer, ``((1 + ratio) * chains, n)``: replica ``r`` of chain ``c`` is row
      ``r * chains + c`` and stays there.
    - ``target``: which replica of each chain is the one at the model, ``(chains,)``; the others are tempered.
    - ``level``: where each replica is, ``(1 + ratio, chains)``, 0 for the model; that of ``target`` is always 0.
    - ``betas``: inverse temperatures of the levels, falling from 1.
    - ``weights``: see `Weights`.
    - ``base_bias``: bias of the visible units of the base; None where the base is uniform.
    """

    replicas: Configuration
    target: Int[Array, " chains"]
    level: Int[Array, "replicas chains"]
    betas: Float[Array, " levels"]
    weights: Weights
    base_bias: Float[Array, " visible"] | None

    @property
    def particles(self) -> Configuration:
        """The chains at the model."""
        chains = self.target.shape[-1]
        row = (self.target * chains + jnp.arange(chains))[..., None]
        return tuple(
            jnp.take_along_axis(layer, row, axis=-2, mode="promise_in_bounds") for layer in self.replicas
        )


class CAST(AbstractAdaptiveSampler, AbstractPathSampler):
    r"""Coupled adaptive simulated tempering, CAST 1:``ratio``: every chain has tempered chains that walk for it.

    .. math:: \pi(x, y_1, k_1, \dots, y_X, k_X) \propto e^{-E(x)} \prod_r e^{-E_{\beta_{k_r}}(y_r) - g_{k_r}}, \quad
        \log r = (\beta_k - \beta_{k'})\, D(y) + g_k - g_{k'} + \log \frac{q(k' \to k)}{q(k \to k')}

    with :math:`E_\beta` and :math:`D = E - E_0` as in `ParallelTempering`. A step makes ``steps`` sweeps of all
    replicas in one batch; then every tempered chain proposes the level above or below its own (at an end, the only one
    there is: the last term is :math:`\log \tfrac12` where it leaves an end, :math:`\log 2` where it comes to one, 0
    with two levels) and takes it if :math:`\log u < \log r`; then each chain at the model changes places with one of
    its tempered chains that are at level 0, each of them as likely, if any is. That needs no acceptance: both have the
    law of the model there, and who is chosen does not depend on configurations. Levels move by joint energies, which
    reuse the products that the sweep has made and are those of the laws that it samples.

    **The weights** :math:`g` are learned by :meth:`adapt`, never by a step, which leaves the law above invariant for
    any of them: at :math:`g_k = \log Z_k` all levels are visited alike.

    - ``gain="decaying"``: :math:`g_k \leftarrow g_k + a\, n_k K / N` for :math:`n_k` of :math:`N` tempered chains at
      one of :math:`K` levels. The gain :math:`a` is at most 1 nat at first, and halved every time that all levels have
      been visited evenly and ten chains have walked from one end to the other, but not below the :math:`1/t` of
      stochastic approximation. Where a walk ceases to be even, as when training outruns it, learning begins again.
    - a number, such as 10: :math:`g_k \leftarrow g_k + \log(1 + \gamma n_k)` for ever. It never converges, but follows
      any model.

    **Other arguments:** ``rungs`` levels, evenly spaced, or ``schedule``, betas of your own rising to 1; ``base`` as in
    `ParallelTempering`. ``state.particles`` are the chains at the model.

    Raises `SettingError` for settings out of range. Source: Salakhutdinov, "Learning deep Boltzmann machines using
    adaptive MCMC" (2010), whose tempered chains serve all chains alike and of which as many as there are chains change
    places; here each chain has its own, so that chains stay independent. Weights: Wang and Landau (2001); 1/t:
    Belardinelli and Pereyra (2007), and Tan, "Optimally adjusted mixture sampling" (2017).

    >>> CAST(ratio=2).rungs
    20
    """

    ratio: int = eqx.field(converter=_checked_ratio)
    rungs: int = eqx.field(converter=_checked_rungs)
    steps: int = eqx.field(converter=checked_steps)
    gain: str | float
    schedule: str | tuple[float, ...] = eqx.field(converter=checked_schedule)
    base: str

    def __init__(
        self,
        ratio: SupportsIndex = 10,
        rungs: SupportsIndex | None = None,
        steps: SupportsIndex = 1,
        gain: Any = DECAYING,
        schedule: Any = "uniform",
        base: str = "data",
    ):
        self.schedule = schedule = checked_schedule(schedule)
        self.ratio = ratio  # pyright: ignore[reportAttributeAccessIssue]
        self.rungs = rungs_of(rungs, schedule, 20)  # pyright: ignore[reportAttributeAccessIssue]
        self.steps = steps  # pyright: ignore[reportAttributeAccessIssue]
        self.gain = float(gain) if is_number(gain) else gain
        self.base = base

    def __check_init__(self):
        check_base(self.base)
        check_schedule(self.schedule, self.rungs)
        number = isinstance(self.gain, float) and 0 < self.gain < float("inf")
        if not number and self.gain != DECAYING:
            raise SettingError(
                f"gain must be {DECAYING!r} or a number above 0, got {self.gain!r}; pass e.g. 10, which never decays"
            )

    @property
    def changes_shapes(self) -> bool:
        return False

    def init(self, words: Words, model: AbstractEnergyModel, particles: Configuration) -> CASTState:
        """Replicas that begin as copies of the particles; tempered ones at levels as far apart as they can be."""
        dtype, chains = particles[0].dtype, particles[0].shape[0]
        levels = np.concatenate([[0], np.arange(self.ratio) * self.rungs // self.ratio])
        level = jnp.broadcast_to(jnp.asarray(levels, jnp.int32)[:, None], (1 + self.ratio, chains))
        return CASTState(  # pyright: ignore[reportCallIssue] - particles are read from the replicas
            replicas=tuple(jnp.tile(layer, (1 + self.ratio, 1)) for layer in particles),
            target=jnp.zeros(chains, jnp.int32),
            level=level,
            betas=jnp.asarray(first_betas(self.schedule, self.rungs), dtype),
            weights=Weights.none(self.rungs, level, dtype),
            base_bias=first_bias(self.base, model, dtype),
        )

    def rebased(
        self, state: CASTState, model: AbstractEnergyModel, mean: Float[Array, " visible"]
    ) -> CASTState:
        bias = bias_at(model, mean, state.base_bias)
        return state if bias is None else eqx.tree_at(lambda tree: tree.base_bias, state, bias)

    def step(
        self, noise: Noise, model: AbstractEnergyModel, state: CASTState
    ) -> tuple[CASTState, SamplerInfo]:
        base = self.base_at(model, state)
        rows, beta = state.replicas, state.betas[state.level].reshape(-1)
        if self.steps > 1:
            rows = jax.lax.fori_loop(
                0, self.steps - 1, lambda i, now: sweep_at(noise.at(i), model, base, now, beta), rows
            )
        # The last sweep stands outside the loop, so that the energies can share its products.
        rows = sweep_at(noise.at(self.steps - 1), model, base, rows, beta)
        difference = energy_difference(model, base, rows).reshape(state.level.shape)
        turns, coins = noise.stream(_LEVEL_STREAM).pair(state.level.shape)
        wanted, log_odds = neighbour(state.level, len(state.betas), turns & jnp.uint32(1) == 1)
        log_weights = state.weights.log_weights
        log_ratio = (state.betas[state.level] - state.betas[wanted]) * difference
        log_ratio = log_ratio + log_weights[state.level] - log_weights[wanted] + log_odds
        tempered = jnp.arange(len(state.level))[:, None] != state.target
        moves = tempered & (jnp.log(uniform(coins)) < log_ratio)
        level = jnp.where(moves, wanted, state.level)

        # Places change hands, and replicas stay where they are.
        lots, _ = noise.stream(_COUPLING_STREAM).pair(level.shape)
        ready = tempered & (level == 0)
        chosen = jnp.argmax(jnp.where(ready, uniform(lots), 0), axis=0).astype(state.target.dtype)
        coupled = jnp.any(ready, axis=0)
        target = jnp.where(coupled, chosen, state.target)
        after = eqx.tree_at(
            lambda tree: (tree.replicas, tree.target, tree.level), state, (rows, target, level)
        )
        acceptance = jnp.sum(jnp.where(tempered, jnp.exp(jnp.minimum(log_ratio, 0)), 0)) / (
            self.ratio * level.shape[1]
        )
        return after, {"level_acceptance": acceptance, "coupled": jnp.mean(coupled, dtype=acceptance.dtype)}

    def base_at(self, model: AbstractEnergyModel, state: CASTState) -> Independent | None:
        """The far end of the walk as it is now; None where it is uniform, with no energy at all."""
        return far_end(model, state.base_bias)

    def adapt(self, state: CASTState, info: SamplerInfo) -> CASTState:
        """Raises the weights of the levels at which tempered chains are."""
        constant = None if isinstance(self.gain, str) else self.gain
        return eqx.tree_at(lambda tree: tree.weights, state, state.weights.after(state.level, constant))

    def between(self, words: Words, model: AbstractEnergyModel, state: CASTState) -> CASTState:
        return state

    def unit_updates(self, model: AbstractEnergyModel, state: CASTState) -> int:
        return unit_updates(model, state.level.size, self.steps)


def neighbour(
    level: Int[Array, "*batch"], levels: int, up: Array
) -> tuple[Int[Array, "*batch"], Float[Array, "*batch"]]:
    r"""The level that is proposed, ``up`` or down, and :math:`\log q(k' \to k) / q(k \to k')`.

    At an end the only neighbour is proposed, twice as often as it proposes the end.

    >>> [part.tolist() for part in neighbour(jnp.array([0, 1, 1]), 3, jnp.array([False, False, True]))]
    [[1, 0, 2], [-0.693..., 0.693..., 0.693...]]
    """
    last = levels - 1
    wanted = jnp.where((up | (level == 0)) & (level != last), level + 1, level - 1)

    def at_end(place: Int[Array, "*batch"]) -> Int[Array, "*batch"]:
        return ((place == 0) | (place == last)).astype(jnp.int32)

    return wanted, np.log(2).astype(np.float32) * (at_end(wanted) - at_end(level))
