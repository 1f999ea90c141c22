"""Tempered transitions: a chain goes up through the temperatures and down again, and is taken or left as a whole."""

from __future__ import annotations

from typing import Any, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.independent import Independent
from harmonium.numerics.random import Noise, uniform
from harmonium.numerics.whole import whole_number
from harmonium.samplers.base import (
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

MOST_RUNGS = 10_000

_COIN_STREAM = 99


def _checked_rungs(rungs: SupportsIndex) -> int:
    return whole_number(
        rungs, "a ladder needs a whole number of rungs, at least 2", "pass e.g. 50", least=2, most=MOST_RUNGS
    )


class TransitionsState(AbstractSamplerState):
    """The chains, and what their transitions pass through.

    - ``betas``: inverse temperatures of the rungs, falling from 1.
    - ``base_bias``: bias of the visible units of the base; None where the base is uniform.
    """

    particles: Configuration
    betas: Float[Array, " rungs"]
    base_bias: Float[Array, " visible"] | None


class TemperedTransitions(AbstractPathSampler):
    r"""Every chain goes up through ``rungs`` temperatures to a base that mixes at once, and down again.

    .. math:: \log r = \sum_{i=0}^{n-1} (\beta_i - \beta_{i+1}) \big(D(\hat x_i) - D(\check x_i)\big), \quad D = E - E_0

    A step makes ``steps`` sweeps at the model, which give :math:`\hat x_0`. On the way up
    :math:`\hat x_{i+1}` follows from :math:`\hat x_i` by sweeps at rung :math:`i + 1`; the last one is
    :math:`\check x_n`; on the way down :math:`\check x_i` follows from :math:`\check x_{i+1}` by as many sweeps at rung
    :math:`i + 1`, *backwards*. The end :math:`\check x_0` is taken if :math:`\log u < \log r`, else the chain stays
    at :math:`\hat x_0`.

    **Why it is exact.** A sweep backwards undoes a sweep, :math:`p_i(x) S_i(x, y) = p_i(y) \overleftarrow{S}_i(y, x)`,
    at every rung. Hence the odds of a whole way there and of the same way gone back are
    :math:`p_0(\check x_0) / p_0(\hat x_0)` times the product of
    :math:`p_{i+1}(\hat x_i) / p_i(\hat x_i)` and :math:`p_i(\check x_i) / p_{i+1}(\check x_i)`, in which every
    partition function stands once above and once below: it is the :math:`r` above, that of Metropolis and Hastings for
    ways. With sweeps in one order on both ways it is not.

    **Arguments:** ``rungs`` evenly spaced, or ``schedule``, betas of your own rising to 1; ``base`` as in
    `ParallelTempering`. A step costs ``steps * (2 * rungs - 1)`` sweeps, and needs no replicas.

    Raises `SettingError` for settings out of range. Source: Neal, "Sampling from multimodal distributions using
    tempered transitions" (1996), equations 11 to 14, where the kernels of one rung may be any that undo each other.

    >>> TemperedTransitions(schedule=[0, 0.5, 1]).rungs
    3
    """

    rungs: int = eqx.field(converter=_checked_rungs)
    steps: int = eqx.field(converter=checked_steps)
    schedule: str | tuple[float, ...] = eqx.field(converter=checked_schedule)
    base: str

    def __init__(
        self,
        rungs: SupportsIndex | None = None,
        steps: SupportsIndex = 1,
        schedule: Any = "uniform",
        base: str = "data",
    ):
        self.schedule = schedule = checked_schedule(schedule)
        self.rungs = rungs_of(rungs, schedule, 50)  # pyright: ignore[reportAttributeAccessIssue]
        self.steps = steps  # pyright: ignore[reportAttributeAccessIssue]
        self.base = base

    def __check_init__(self):
        check_base(self.base)
        check_schedule(self.schedule, self.rungs)

    def init(self, words: Words, model: AbstractEnergyModel, particles: Configuration) -> TransitionsState:
        dtype = particles[0].dtype
        return TransitionsState(
            particles,
            betas=jnp.asarray(first_betas(self.schedule, self.rungs), dtype),
            base_bias=first_bias(self.base, model, dtype),
        )

    def rebased(
        self, state: TransitionsState, model: AbstractEnergyModel, mean: Float[Array, " visible"]
    ) -> TransitionsState:
        bias = bias_at(model, mean, state.base_bias)
        return state if bias is None else eqx.tree_at(lambda tree: tree.base_bias, state, bias)

    def step(
        self, noise: Noise, model: AbstractEnergyModel, state: TransitionsState
    ) -> tuple[TransitionsState, SamplerInfo]:
        base, pairs = self.base_at(model, state), len(state.betas) - 1
        gaps = state.betas[:-1] - state.betas[1:]

        def swept(stage: Array | int, beta: Array, rows: Configuration, backwards: bool) -> Configuration:
            def one(sweep: Array | int, rows: Configuration) -> Configuration:
                own = noise.at(jnp.asarray(stage * self.steps + sweep))
                return sweep_at(own, model, base, rows, beta, backwards=backwards)

            # The last sweep stands outside the loop, so that the energies can share its products.
            before = jax.lax.fori_loop(0, self.steps - 1, one, rows) if self.steps > 1 else rows
            return one(self.steps - 1, before)

        def up(pair: Array, now: tuple[Configuration, Array, Array]) -> tuple[Configuration, Array, Array]:
            rows, difference, total = now
            rows = swept(1 + pair, state.betas[pair + 1], rows, backwards=False)
            # The energies after a sweep share its products.
            return rows, energy_difference(model, base, rows), total + gaps[pair] * difference

        def down(turn: Array, now: tuple[Configuration, Array]) -> tuple[Configuration, Array]:
            pair = pairs - 1 - turn
            rows = swept(1 + pairs + turn, state.betas[pair + 1], now[0], backwards=True)
            return rows, now[1] - gaps[pair] * energy_difference(model, base, rows)

        start = swept(0, state.betas[0], state.particles, backwards=False)
        first = energy_difference(model, base, start)
        top, _, total = jax.lax.fori_loop(0, pairs, up, (start, first, jnp.zeros_like(first)))
        end, log_ratio = jax.lax.fori_loop(0, pairs, down, (top, total))
        coins, _ = noise.stream(_COIN_STREAM).pair(log_ratio.shape)
        accepted = (jnp.log(uniform(coins)) < log_ratio)[:, None]
        particles = tuple(jnp.where(accepted, new, old) for new, old in zip(end, start, strict=True))
        after = eqx.tree_at(lambda tree: tree.particles, state, particles)
        return after, {"acceptance": jnp.mean(jnp.exp(jnp.minimum(log_ratio, 0)))}

    def base_at(self, model: AbstractEnergyModel, state: TransitionsState) -> Independent | None:
        """The far end of the way as it is now; None where it is uniform, with no energy at all."""
        return far_end(model, state.base_bias)

    def unit_updates(self, model: AbstractEnergyModel, state: TransitionsState) -> int:
        return unit_updates(model, state.particles[0].shape[0], self.steps * (2 * len(state.betas) - 1))
