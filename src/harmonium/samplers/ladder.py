"""What every replica exchange shares: swaps between neighbouring rungs, what they brought about, and what they cost.

A ladder is a row of *rungs*, each with a distribution of its own, from the target (rung 0) to one that mixes easily
(the last). What a rung is does not matter here: a temperature, a layer of a stack, a checkpoint of a run. Arrays of
particles have the rungs first and the chains second, ``(rungs, chains, ...)``: every chain has a ladder of its own,
and nothing looks from one chain into another. Pair ``k`` is rung ``k`` and rung ``k + 1``.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeVar, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Num, UInt32

from harmonium.energy.base import AbstractEnergyModel
from harmonium.errors import SettingError
from harmonium.numerics.named import is_name
from harmonium.numerics.random import uniform

Particles = TypeVar("Particles")

Order = Literal["even-odd", "random"]
"""Which pairs try to swap: even and odd ones in turn, or those of a coin that every chain tosses at every round."""

ORDERS: tuple[str, ...] = get_args(Order)

_LEAST_REJECTION = 1e-6
"""What a pair counts for at least when rungs are spread, so that pairs without any rejection stay where they are."""


def check_order(order: str) -> None:
    """Raise `SettingError` unless this is a name of `ORDERS`."""
    if not is_name(order, ORDERS):
        raise SettingError(f"swaps must be one of {', '.join(ORDERS)}, got {order!r}; pass 'even-odd'")


class Swaps(NamedTuple):
    """One round of swaps.

    ``source`` says from which rung each place takes its particles, ``tried`` which pairs took part, ``acceptance`` how
    likely each pair was to swap, whether it took part or not.
    """

    source: Int[Array, "rungs chains"]
    tried: Bool[Array, "pairs chains"]
    acceptance: Float[Array, "pairs chains"]


def pairs_in_turn(
    order: str, rounds: Int[Array, ""], words: UInt32[Array, "pairs chains"]
) -> Bool[Array, "pairs chains"]:
    """The pairs that take part in a round: never two that share a rung.

    ``rounds`` counts those before it. Taking turns is what makes a replica travel: with a coin at every round it
    diffuses. Source: Syed, Bouchard-Cote, Deligiannidis and Doucet, "Non-reversible parallel tempering" (2022), the
    deterministic even-odd scheme and its stochastic counterpart. As masks, not as a branch, so that members of an
    ensemble cost nothing more; a coin of "random" is the last bit of the first pair's word.
    """
    pair = jnp.arange(words.shape[0])[:, None]
    turn = rounds if order == "even-odd" else (words[:1] & jnp.uint32(1)).astype(jnp.int32)
    return jnp.broadcast_to((pair + turn) % 2 == 0, words.shape)


def swap_pairs(
    words: UInt32[Array, "pairs chains"],
    log_ratio: Float[Array, "pairs chains"],
    tried: Bool[Array, "pairs chains"],
) -> Swaps:
    r"""Decide every pair by Metropolis, :math:`\log u < \log r`.

    ``log_ratio`` is, for each pair, the log-density of the two rungs with their particles exchanged minus that with
    them as they are. The ratio itself is never formed: it overflows. Source: the acceptance of an exchange, Swendsen
    and Wang (1986).
    """
    accepted = tried & (jnp.log(uniform(words)) < log_ratio)
    edge = jnp.zeros_like(accepted[:1])
    rung = jnp.arange(len(accepted) + 1)[:, None]
    up, down = jnp.concatenate([accepted, edge]), jnp.concatenate([edge, accepted])
    source = rung + up.astype(rung.dtype) - down.astype(rung.dtype)
    return Swaps(source, tried, jnp.exp(jnp.minimum(log_ratio, 0)))


def exchanged(particles: Particles, source: Int[Array, "rungs chains"]) -> Particles:
    """The particles, each place holding those of its source; every array has the rungs first and the chains second.

    Where the rungs differ in a number only, let labels of replicas change places and leave the replicas where they
    are: rows of hundreds of units that are moved in the step that draws them are drawn over again for it.
    """

    def moved(layer: Num[Array, "rungs chains *rest"]) -> Num[Array, "rungs chains *rest"]:
        where = source.reshape(*source.shape, *[1] * (layer.ndim - 2))
        return jnp.take_along_axis(layer, where, axis=0, mode="promise_in_bounds")

    return jax.tree.map(moved, particles)


class Traffic(eqx.Module):
    """What the rounds of swaps so far brought about: means over rounds and chains, and where replicas are heading.

    - ``rounds``: how many rounds the means are over.
    - ``rejection``: per pair, how likely an exchange was to be refused, whether it was tried or not.
    - ``upward``: per rung, the share of its replicas that were last at the target, of those that have been at either
      end (1 at rung 0, 0 at the last).
    - ``heading``: 1 for a replica that was last at the target, -1 for one that was last at the far end, 0 for one that
      has been at neither.
    - ``trips``: per chain, how many replicas have come to the target from the far end.
    """

    rounds: Int[Array, ""]
    rejection: Float[Array, " pairs"]
    upward: Float[Array, " rungs"]
    heading: Int[Array, "rungs chains"]
    trips: Int[Array, " chains"]

    @classmethod
    def none(cls, rungs: int, chains: int) -> Traffic:
        """Before the first round."""
        ends = jnp.zeros((rungs, chains), jnp.int8).at[-1].set(-1).at[0].set(1)
        return cls(
            rounds=jnp.int32(0),
            rejection=jnp.zeros(rungs - 1, jnp.float32),
            upward=jnp.full(rungs, 0.5, jnp.float32),
            heading=ends,
            trips=jnp.zeros(chains, jnp.int32),
        )

    def after(self, swaps: Swaps) -> Traffic:
        """With one more round."""
        heading = exchanged(self.heading, swaps.source)
        arrived = heading[0] == -1
        heading = heading.at[-1].set(-1).at[0].set(1)
        rounds = self.rounds + 1
        weight = 1 / rounds.astype(jnp.float32)
        known = jnp.sum(heading != 0, axis=1)
        # Added up over both: a rung whose replicas are all fresh from the start keeps what is known of it.
        upward = jnp.sum(heading > 0, axis=1) / jnp.maximum(known, 1)
        upward = jnp.where(known > 0, upward, self.upward)
        rejection = 1 - jnp.mean(swaps.acceptance, axis=1)
        return Traffic(
            rounds=rounds,
            rejection=self.rejection + weight * (rejection.astype(jnp.float32) - self.rejection),
            upward=self.upward + weight * (upward.astype(jnp.float32) - self.upward),
            heading=heading,
            trips=self.trips + arrived.astype(jnp.int32),
        )

    def fresh(self) -> Traffic:
        """With the means begun again; where replicas are heading, and their trips, are kept."""
        return eqx.tree_at(lambda traffic: traffic.rounds, self, jnp.zeros_like(self.rounds))


def barrier(rejection: Float[Array | np.ndarray, " pairs"]) -> Float[Array, ""]:
    r"""The communication barrier between the ends of a ladder, :math:`\Lambda = \sum_k r_k`.

    The sum of the mean rejections of neighbours hardly depends on how many rungs there are, once there are enough. The
    round trips that a ladder can make per round of even-odd swaps are at most :math:`1/(2 + 2\Lambda)`. Source: Syed,
    Bouchard-Cote, Deligiannidis and Doucet (2022), section 3.

    >>> float(barrier(np.array([0.25, 0.5])))
    0.75
    """
    return jnp.sum(jnp.asarray(rejection))


def recommended_rungs(rejection: Float[Array | np.ndarray, " pairs"]) -> int:
    r"""How many rungs make the most round trips per unit update: :math:`2\Lambda` pairs, rejecting half of the time.

    Where rungs reject nearly everything, the barrier is underestimated, and so is their number. Source: as `barrier`,
    section 4; theirs counts pairs of replicas on machines of their own, ours one machine, whose optimum is the same.

    >>> recommended_rungs(np.array([0.9, 0.9, 0.9]))
    7
    """
    return max(2, 1 + int(np.ceil(2 * float(barrier(rejection)) - 1e-6)))


def round_trip_rate(rejection: Float[Array | np.ndarray, " pairs"]) -> Float[Array, ""]:
    r"""Round trips per round that even-odd swaps make where replicas forget between rounds.

    .. math:: \tau = \Big(2 + 2 \sum_k \frac{r_k}{1 - r_k}\Big)^{-1}

    Source: as `barrier`, the non-reversible scheme.

    >>> float(round_trip_rate(np.array([0.0, 0.5])))
    0.25
    """
    refused = jnp.asarray(rejection)
    return 1 / (2 + 2 * jnp.sum(refused / jnp.maximum(1 - refused, jnp.finfo(refused.dtype).tiny)))


def equalised(betas: Float[Array, " rungs"], rejection: Float[Array, " pairs"]) -> Float[Array, " rungs"]:
    """Places for as many rungs between the same ends, at which all pairs would be refused alike.

    The rejection summed up along the ladder is a function of the place, linear between rungs; the new places divide it
    evenly. Source: as `barrier`, the schedule of section 5; they interpolate by a cubic.

    >>> equalised(jnp.array([1.0, 0.5, 0.0]), jnp.array([0.6, 0.2])).tolist()
    [1.0, 0.666..., 0.0]
    """
    passed = jnp.cumsum(jnp.maximum(rejection, _LEAST_REJECTION))
    reached = jnp.concatenate([jnp.zeros(1, passed.dtype), passed])
    wanted = reached[-1] * jnp.linspace(0, 1, len(betas), dtype=reached.dtype)
    found = jnp.interp(wanted, reached, betas)
    return found.at[0].set(betas[0]).at[-1].set(betas[-1])


def unit_updates(model: AbstractEnergyModel, replicas: int, sweeps: int = 1) -> int:
    """What sweeps of so many replicas cost: the units that were drawn, those of *every* replica counted.

    The measure at which samplers are compared: a ladder of ten rungs costs ten chains.

    >>> from harmonium.energy.rbm import RBM
    >>> unit_updates(RBM(4, 2), replicas=10)
    60
    """
    return replicas * sweeps * sum(units.size for units in model.units)
