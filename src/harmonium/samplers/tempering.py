"""Parallel tempering: replicas at many temperatures that change places."""

from __future__ import annotations

from typing import Any, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.independent import Independent
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import whole_number
from harmonium.samplers.base import (
    AbstractAdaptiveSampler,
    AbstractPathSampler,
    AbstractSamplerState,
    SamplerInfo,
)
from harmonium.samplers.ladder import (
    Traffic,
    check_order,
    equalised,
    exchanged,
    pairs_in_turn,
    swap_pairs,
    unit_updates,
)
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

SCHEDULES = ("uniform", "learned", "adaptive")

MOST_RUNGS = 100
"""No rung is spawned beyond these."""

_SWAP_STREAM = 99

_WINDOW = 100
"""Rounds of swaps after which a learned schedule is moved."""

_MOVE = 0.5
"""How far it is moved towards the schedule at which all pairs would have been refused alike."""

_FEEDBACK_RATE = 1e-4
"""Per step, how far the adaptive schedule moves towards the one at which replicas flow evenly."""

_LEAST_SWAPS = 0.4
"""Mean acceptance of neighbours below which the adaptive schedule asks for another rung."""


def _checked_rungs(rungs: SupportsIndex) -> int:
    return whole_number(
        rungs, "a ladder needs a whole number of rungs, at least 2", "pass e.g. 10", least=2, most=MOST_RUNGS
    )


class TemperingState(AbstractSamplerState):
    """Replicas, at which rungs they are, and what is known of their travels.

    - ``replicas``: one array per layer, ``(rungs * chains, n)``: replica ``r`` of chain ``c`` is row ``r * chains + c``
      and stays there; rungs change hands. (Two axes of rows would make a sweep a quarter slower.)
    - ``holder``: which replica is at each rung, ``(rungs, chains)``; rung 0 is the model itself.
    - ``betas``: inverse temperatures of the rungs, falling from 1.
    - ``rounds``: rounds of swaps made.
    - ``base_bias``: bias of the visible units of the base; None where the base is uniform.
    - ``traffic``: see `harmonium.samplers.ladder.Traffic`.
    """

    replicas: Configuration
    holder: Int[Array, "rungs chains"]
    betas: Float[Array, " rungs"]
    rounds: Int[Array, ""]
    base_bias: Float[Array, " visible"] | None
    traffic: Traffic

    @property
    def particles(self) -> Configuration:
        """The chains at the model: those of rung 0."""
        return self._of(self.holder[..., 0, :])

    @property
    def ladder(self) -> Configuration:
        """All replicas in the order of the rungs, ``(rungs, chains, n)``."""
        rows = self._of(self.holder.reshape(*self.holder.shape[:-2], -1))
        return tuple(layer.reshape(*self.holder.shape, -1) for layer in rows)

    def _of(self, holder: Int[Array, "*members some"]) -> Configuration:
        """Rows of replicas, also of members stacked in front."""
        chains = self.holder.shape[-1]
        row = (holder * chains + jnp.arange(holder.shape[-1]) % chains)[..., None]
        return tuple(
            jnp.take_along_axis(layer, row, axis=-2, mode="promise_in_bounds") for layer in self.replicas
        )


class ParallelTempering(AbstractAdaptiveSampler, AbstractPathSampler):
    r"""``rungs`` replicas of every chain, from the model to a base that mixes at once, with swaps of neighbours.

    .. math:: p_k(x) \propto e^{-E_{\beta_k}(x)}, \quad E_\beta = (1 - \beta) E_0 + \beta E, \quad
        \log r = (\beta_k - \beta_{k+1}) \big(D(x_k) - D(x_{k+1})\big), \quad D = E - E_0

    A step makes ``steps`` sweeps of all replicas in one batch and then one round of swaps, each accepted if
    :math:`\log u < \log r`. Whole configurations swap, by their joint energies: these reuse the products that
    the sweep has made, and are those of the distributions that the sweeps sample. (A swap by :math:`\beta F(v)`, the
    marginal free energy times :math:`\beta`, is none: the tempered sweep has :math:`F_\beta(v)`.) ``state.particles``
    are the chains at the model; every one has a ladder of its own.

    **Arguments:**

    - ``swaps``: "even-odd", pairs in turn, or "random", by a coin for every chain.
    - ``schedule``: "uniform" betas; betas of your own, rising to 1 (they are the rungs); "learned", betas that move so
      that all pairs are refused alike; "adaptive", betas that move slowly so that replicas flow evenly, and a rung
      spawned where the flow drops most while swaps are rare.
    - ``base``: "data", independent units at the marginals of the data, the other layers at the fields that the mean of
      the data makes; "uniform", every value alike. In sampling, where there are no data, the marginals are those of a
      short pilot run.

    Raises `SettingError` for settings out of range. Source: Swendsen and Wang (1986); Desjardins, Courville, Bengio,
    Vincent and Delalleau, "Parallel tempering for training of restricted Boltzmann machines" (2010), whose one hot
    ladder serves all chains; "adaptive": Desjardins, Courville and Bengio, "Adaptive parallel tempering for stochastic
    maximum likelihood learning of RBMs" (2010); "learned": Syed et al. (2022).

    >>> ParallelTempering(rungs=5).schedule
    'uniform'
    >>> ParallelTempering(schedule=[0, 0.5, 1]).rungs
    3
    """

    rungs: int = eqx.field(converter=_checked_rungs)
    steps: int = eqx.field(converter=checked_steps)
    swaps: str
    schedule: str | tuple[float, ...] = eqx.field(converter=checked_schedule)
    base: str

    def __init__(
        self,
        rungs: SupportsIndex | None = None,
        steps: SupportsIndex = 1,
        swaps: str = "even-odd",
        schedule: Any = "uniform",
        base: str = "data",
    ):
        self.schedule = schedule = checked_schedule(schedule)
        self.rungs = rungs_of(rungs, schedule, 10)  # pyright: ignore[reportAttributeAccessIssue]
        self.steps = steps  # pyright: ignore[reportAttributeAccessIssue]
        self.swaps = swaps
        self.base = base

    def __check_init__(self):
        check_order(self.swaps)
        check_base(self.base)
        check_schedule(self.schedule, self.rungs, SCHEDULES)

    @property
    def changes_shapes(self) -> bool:
        return self.schedule == "adaptive"

    def init(self, words: Words, model: AbstractEnergyModel, particles: Configuration) -> TemperingState:
        """A ladder all of whose rungs begin as copies of the particles, from the model's layers at rest."""
        dtype = particles[0].dtype
        chains = particles[0].shape[0]
        return TemperingState(  # pyright: ignore[reportCallIssue] - particles are read from the ladder
            replicas=tuple(jnp.tile(layer, (self.rungs, 1)) for layer in particles),
            holder=jnp.broadcast_to(jnp.arange(self.rungs)[:, None], (self.rungs, chains)),
            betas=jnp.asarray(first_betas(self.schedule, self.rungs), dtype),
            rounds=jnp.int32(0),
            base_bias=first_bias(self.base, model, dtype),
            traffic=Traffic.none(self.rungs, chains),
        )

    def rebased(
        self, state: TemperingState, model: AbstractEnergyModel, mean: Float[Array, " visible"]
    ) -> TemperingState:
        bias = bias_at(model, mean, state.base_bias)
        return state if bias is None else eqx.tree_at(lambda tree: tree.base_bias, state, bias)

    def step(
        self, noise: Noise, model: AbstractEnergyModel, state: TemperingState
    ) -> tuple[TemperingState, SamplerInfo]:
        return self.step_from(self.base_at(model, state), noise, model, state)

    def step_from(
        self, base: Independent | None, noise: Noise, model: AbstractEnergyModel, state: TemperingState
    ) -> tuple[TemperingState, SamplerInfo]:
        """A step of a ladder whose far end is ``base``, not the one that the state remembers."""
        shape = state.holder.shape
        rows = state.replicas
        beta = _betas_of_replicas(state).reshape(-1)
        if self.steps > 1:
            rows = jax.lax.fori_loop(
                0, self.steps - 1, lambda i, now: sweep_at(noise.at(i), model, base, now, beta), rows
            )
        # The last sweep stands outside the loop, so that the energies can share its products.
        rows = sweep_at(noise.at(self.steps - 1), model, base, rows, beta)
        difference = energy_difference(model, base, rows)
        difference = jnp.take_along_axis(difference.reshape(shape), state.holder, axis=0)
        log_ratio = (state.betas[:-1] - state.betas[1:])[:, None] * (difference[:-1] - difference[1:])
        coins, turns = noise.stream(_SWAP_STREAM).pair(log_ratio.shape)
        swaps = swap_pairs(coins, log_ratio, pairs_in_turn(self.swaps, state.rounds, turns))
        after = eqx.tree_at(
            lambda tree: (tree.replicas, tree.holder, tree.rounds, tree.traffic),
            state,
            (
                rows,
                exchanged(state.holder, swaps.source),
                state.rounds + 1,
                state.traffic.after(swaps),
            ),
        )
        return after, {"swap_acceptance": jnp.mean(swaps.acceptance)}

    def base_at(self, model: AbstractEnergyModel, state: TemperingState) -> Independent | None:
        """The far end of the ladder as it is now; None where it is uniform, with no energy at all."""
        return far_end(model, state.base_bias)

    def adapt(self, state: TemperingState, info: SamplerInfo) -> TemperingState:
        """Moves the betas of a "learned" schedule every hundred rounds, those of an "adaptive" one at each."""
        if self.schedule == "adaptive":
            return eqx.tree_at(lambda tree: tree.betas, state, _flowing(state.betas, state.traffic.upward))
        if self.schedule != "learned":
            return state
        traffic, due = state.traffic, state.traffic.rounds >= _WINDOW
        aim = equalised(state.betas, traffic.rejection.astype(state.betas.dtype))
        betas = jnp.where(due, state.betas + _MOVE * (aim - state.betas), state.betas)
        rounds = jnp.where(due, 0, traffic.rounds)
        return eqx.tree_at(lambda tree: (tree.betas, tree.traffic.rounds), state, (betas, rounds))

    def between(self, words: Words, model: AbstractEnergyModel, state: TemperingState) -> TemperingState:
        """With an "adaptive" schedule, a rung more while swaps are rare: where the flow of replicas drops most.

        It lies half-way between its neighbours and begins with a copy of the hotter one's replicas.
        """
        if self.schedule != "adaptive" or not int(state.traffic.rounds):
            return state
        rungs = len(state.betas)
        acceptance = 1 - float(np.mean(np.asarray(state.traffic.rejection)))
        traffic = state.traffic.fresh()
        if acceptance >= _LEAST_SWAPS or rungs >= MOST_RUNGS:
            return eqx.tree_at(lambda tree: tree.traffic, state, traffic)
        pair = int(np.argmax(-np.diff(np.asarray(state.traffic.upward, np.float64))))
        taken = np.insert(np.arange(rungs), pair + 1, pair + 1)
        betas = np.insert(np.asarray(state.betas), pair + 1, np.mean(state.betas[pair : pair + 2]))
        traffic = Traffic(
            rounds=traffic.rounds,
            rejection=jnp.zeros(rungs, jnp.float32),
            upward=traffic.upward[taken],
            heading=traffic.heading[taken].at[pair + 1].set(0),
            trips=traffic.trips,
        )
        ladder = tuple(layer[taken].reshape(-1, layer.shape[-1]) for layer in state.ladder)
        holder = jnp.broadcast_to(jnp.arange(rungs + 1)[:, None], (rungs + 1, state.holder.shape[1]))
        return eqx.tree_at(
            lambda tree: (tree.replicas, tree.holder, tree.betas, tree.traffic),
            state,
            (ladder, holder, jnp.asarray(betas), traffic),
        )

    def unit_updates(self, model: AbstractEnergyModel, state: TemperingState) -> int:
        return unit_updates(model, state.holder.size, self.steps)


def _betas_of_replicas(state: TemperingState) -> Float[Array, "rungs chains"]:
    """The inverse temperature of every replica: a sum over rungs, which costs less than an index."""
    held = state.holder[:, None, :] == jnp.arange(len(state.holder))[None, :, None]
    return jnp.sum(jnp.where(held, state.betas[:, None, None], 0), axis=0)


def _flowing(betas: Float[Array, " rungs"], upward: Float[Array, " rungs"]) -> Float[Array, " rungs"]:
    """Betas a little nearer to those at which the share of replicas from the target would fall evenly from 1 to 0."""
    falling = jax.lax.cummin(upward.astype(betas.dtype))
    wanted = jnp.linspace(0, 1, len(betas), dtype=betas.dtype)
    aim = jnp.interp(wanted, 1 - falling, betas).at[0].set(betas[0]).at[-1].set(betas[-1])
    return betas + _FEEDBACK_RATE * (aim - betas)
