"""A dimod sampler as negative phase: an annealer, a piece of hardware, or a program that stands for one."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jaxtyping import Array, Float, Int

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.cumulant import ends_of
from harmonium.energy.quadratic import SPIN, Quadratic, pairs_of
from harmonium.errors import SettingError
from harmonium.evaluate.temperature import fit_beta, margins
from harmonium.modes.dimod_sampler import answers, checked_options, options_of
from harmonium.numerics.random import Noise
from harmonium.numerics.whole import is_number
from harmonium.samplers.base import AbstractAdaptiveSampler, AbstractReportingState, SamplerInfo
from harmonium.samplers.ladder import unit_updates
from harmonium.typing import Configuration, Words

_OWN = ("num_reads", "seed", "initial_states", "initial_states_generator")


class AnnealerState(AbstractReportingState):
    """The last answers of a sampler, at which inverse temperature they were to the model, and that of the sampler."""

    particles: Configuration
    effective_beta: Float[Array, ""]
    effective_beta_stderr: Float[Array, ""]
    sampler_beta: Float[Array, ""]

    def metrics(self) -> dict[str, float | None]:
        """What a run says of its annealer: None where the samples tell no temperature."""
        numbers = {
            "effective_beta": self.effective_beta,
            "effective_beta_stderr": self.effective_beta_stderr,
            "sampler_beta": self.sampler_beta,
        }
        return {name: float(value) if np.isfinite(value) else None for name, value in numbers.items()}


class Annealer(AbstractAdaptiveSampler):
    r"""The samples of a dimod sampler as particles: usable wherever a sampler is, such as ``hm.PCD(sampler=...)``.

    At every step the machine is written in spins and handed to ``sampler.sample_ising(h, J, num_reads=chains, ...)``,
    outside of the compiled program. ``options`` are passed on with it, such as ``num_sweeps=100``.

    An annealer samples :math:`e^{-\beta E}` at best, at an inverse temperature :math:`\beta` that nobody sets. Every
    step estimates it from the samples (`harmonium.estimate_beta`), and the metrics of a run have it: ``effective_beta``
    is that of the samples to the model, 1 where they are right, with ``effective_beta_stderr``. With ``calibrated`` the
    energy is handed over divided by ``sampler_beta``, which follows the estimates while a run trains, by a share
    ``rate`` at most and by less where they are unsure: samples are then at the temperature of the model as far as the
    sampler has one. A
    sampler that scales its problems, or its temperatures, by itself undoes this: of
    ``dwave.samplers.SimulatedAnnealingSampler`` pass ``beta_range=(0.1, 1.0)``, of hardware ``auto_scale=False``.

    With ``continued`` the chains are handed over as ``initial_states`` and go on from there. At a constant temperature,
    ``beta_range=(1.0, 1.0)``, simulated annealing is then Metropolis sampling of the model itself, which leaves its law
    invariant. Otherwise samples are drawn afresh, and what an annealer never finds is missed, unseen.

    A sampler that takes a ``seed`` is given one of the step's noise, so that its runs repeat. Any other makes runs that
    do not, and that a `harmonium.resume` does not go on with bit for bit. Runs keep no dimod sampler: pass ``rule=`` to
    `harmonium.resume`. Members of an ensemble would need one each and are refused.

    Raises `SettingError` for what is no dimod sampler and for options that it does not take or that are ours. A sampler
    that gives another number of rows than there are chains, such as ``dimod.ExactSolver``, which lists states and draws
    none, ends the run.

    >>> from dwave.samplers import SimulatedAnnealingSampler
    >>> annealer = Annealer(SimulatedAnnealingSampler(), calibrated=True, num_sweeps=50, beta_range=(0.1, 1.0))
    >>> annealer.traceable, dict(annealer.options)["num_sweeps"]
    (False, 50)
    """

    sampler: Any = eqx.field(static=True)
    options: tuple[tuple[str, Any], ...] = eqx.field(static=True)
    calibrated: bool
    continued: bool
    rate: float

    traceable: ClassVar[bool] = False

    def __init__(
        self,
        sampler: Any,
        *,
        calibrated: bool = False,
        continued: bool = False,
        rate: float = 0.1,
        **options: Any,
    ):
        for name, value in (("calibrated", calibrated), ("continued", continued)):
            if not isinstance(value, bool):
                raise SettingError(f"{name} must be True or False, got {value!r}; pass one of them")
        if not is_number(rate) or not 0 < rate <= 1:
            raise SettingError(f"rate is a share above 0 and at most 1, got {rate!r}; pass e.g. 0.1")
        self.options = checked_options(sampler, options, _OWN)
        taken = options_of(sampler)
        if continued and taken is not None and "initial_states" not in taken:
            raise SettingError(
                f"{type(sampler).__name__} takes no initial_states, so that its chains cannot go on; drop continued"
            )
        self.sampler = sampler
        self.calibrated, self.continued, self.rate = bool(calibrated), bool(continued), float(rate)

    @property
    def changes_shapes(self) -> bool:
        return False

    def init(self, words: Words, model: AbstractEnergyModel, particles: Configuration) -> AnnealerState:
        pairs_of(model)
        particles = _of_one_machine(particles)
        one = jnp.float32(1.0)
        return AnnealerState(particles, one, jnp.float32(jnp.inf), one)

    def step(
        self, noise: Noise, model: AbstractEnergyModel, state: AnnealerState
    ) -> tuple[AnnealerState, SamplerInfo]:
        coupling, bias = model.pairwise()
        first, _ = noise.pair((1,))
        states = jnp.concatenate(state.particles, axis=-1)
        problem = _Problem(self, pairs_of(model), ends_of(model.units), states.shape)
        strength = 1 / state.sampler_beta if self.calibrated else jnp.ones_like(state.sampler_beta)
        number = jax.ShapeDtypeStruct((), jnp.float32)
        after, beta, stderr = io_callback(
            lambda *given: _answered(problem, *(np.asarray(one) for one in given)),
            (jax.ShapeDtypeStruct(states.shape, jnp.float32), number, number),
            *(first[0], coupling, bias, strength, states),
        )
        edges = np.cumsum([units.size for units in model.units])[:-1]
        particles = tuple(
            part.astype(before.dtype)
            for part, before in zip(jnp.split(after, edges, axis=-1), state.particles, strict=True)
        )
        moved = AnnealerState(particles, beta, stderr, state.sampler_beta)
        return moved, {"effective_beta": beta, "effective_beta_stderr": stderr}

    def adapt(self, state: AnnealerState, info: SamplerInfo) -> AnnealerState:
        """Of a calibrated annealer, the inverse temperature moved towards that of the last samples.

        By how much they are off, 1 at most, and by less where the estimate is unsure, so that noise does not drive it.
        """
        if not self.calibrated:
            return state
        beta, stderr = info["effective_beta"], info["effective_beta_stderr"]
        trust = jnp.where(jnp.isinf(beta), 1.0, 1 / (1 + stderr**2))
        off = jnp.where(jnp.isnan(beta), 0.0, jnp.clip(beta - 1, -1, 1))
        moved = state.sampler_beta * jnp.exp(self.rate * trust * off)
        return eqx.tree_at(lambda tree: tree.sampler_beta, state, moved)

    def between(self, words: Words, model: AbstractEnergyModel, state: AnnealerState) -> AnnealerState:
        return state

    def unit_updates(self, model: AbstractEnergyModel, state: AnnealerState) -> int:
        """Units that one step draws, in as many sweeps as ``num_sweeps`` says: a sampler does not tell more."""
        return unit_updates(model, state.particles[0].shape[0], int(dict(self.options).get("num_sweeps", 1)))


class _Problem(NamedTuple):
    """What of a step is known before anything is computed."""

    annealer: Annealer
    pairs: Int[np.ndarray, "pairs 2"]
    ends: Float[np.ndarray, "2 n"]
    shape: tuple[int, ...]


@jax.custom_batching.custom_vmap
def _of_one_machine(particles: Configuration) -> Configuration:
    """The same particles; refused under a map over members."""
    return particles


@_of_one_machine.def_vmap
def _refuse_members(size: int, batched: Any, particles: Configuration):
    raise SettingError(
        f"an annealer answers for one machine at a time, not for {size} members of an ensemble; train them one after "
        "the other, each with the seed hm.member_seed(seed, i)"
    )


def _answered(
    problem: _Problem,
    word: np.ndarray,
    coupling: np.ndarray,
    bias: np.ndarray,
    strength: np.ndarray,
    states: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sampler's answers in the values of the units, the inverse temperature they are at, and its error."""
    annealer, pairs, ends, shape = problem
    first, second = pairs.T
    coupling, bias = coupling.astype(np.float64), bias.astype(np.float64)
    spins = Quadratic(-bias, -coupling[first, second], pairs, 0.0, ends).written_in(SPIN)
    told = Quadratic(
        float(strength) * spins.linear, float(strength) * spins.strengths, pairs, 0.0, spins.ends
    )
    start = np.where(states == ends[1], 1.0, -1.0) if annealer.continued else None
    found = answers(annealer.sampler, told, annealer.options, seed=int(word), reads=shape[0], start=start)
    if len(found) != shape[0]:
        raise SettingError(
            f"{type(annealer.sampler).__name__} gave {len(found)} rows for {shape[0]} chains; pass chains={len(found)} "
            "if it always draws as many, and use another sampler if it lists states instead of drawing them"
        )
    rows = np.where(found > 0, ends[1], ends[0])
    beta, stderr, _ = fit_beta(margins(rows, coupling, bias, ends), rows)
    return rows.astype(np.float32), np.asarray(beta, np.float32), np.asarray(stderr, np.float32)
