"""Training on Artificial Modes: many seeds and rates in one compiled program, scored against the best there is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from harmonium.data.base import DataSet
from harmonium.energy.dbn import DBN
from harmonium.energy.ensemble import Ensemble
from harmonium.energy.rbm import RBM
from harmonium.energy.stack import AbstractStack
from harmonium.evaluate.bounds import exact_bound, exact_scores
from harmonium.evaluate.codes import code_distances
from harmonium.evaluate.ensemble import exact_log_partitions, unnormalised_log_probabilities
from harmonium.evaluate.exact import exact_log_partition
from harmonium.numerics.precision import as_single
from harmonium.rules.contrastive import PCD
from harmonium.samplers.base import AbstractSampler
from harmonium.samplers.deep_tempering import DeepTemperingState
from harmonium.train.config import TrainConfig
from harmonium.train.drive import run_chunk
from harmonium.train.ensemble import member_seed
from harmonium.train.greedy import fit_greedy
from harmonium.train.setup import prepare
from harmonium.train.state import TrainState

HIDDEN = 10
"""Hidden units of every level, few enough for every likelihood to be exact."""

BATCH = 5
"""Rows of an update, and image chains: so few that no batch covers all modes."""

TINY, LARGE = 0.01, 0.3
"""Standard deviations of first weights: the authors', and ours."""


class Method(NamedTuple):
    """What is trained: a level or a stack of them, a sampler, how members begin, and how their rates go on.

    ``improved``: weights of standard deviation 0.3, biases at the marginals of the data and a rate that falls linearly
    to 0, where the paper has 0.01, zeros and constant rates. ``pretrained``: levels below the top one come first.
    """

    label: str
    depth: int
    sampler: AbstractSampler | None
    rates: tuple[float, ...]
    improved: bool = False
    pretrained: bool = False


class Length(NamedTuple):
    """Updates of a run, points of its curves, seeds at every rate."""

    updates: int
    points: int
    seeds: int


class Scored(NamedTuple):
    """Data with the rows that everything is scored on, and their log-probabilities under the generator."""

    data: DataSet
    rows: np.ndarray
    truth: Float[np.ndarray, " rows"]
    entropy: float

    @classmethod
    def of(cls, data: DataSet, count: int) -> Scored:
        """The first ``count`` test rows of a generator whose entropy and density are known."""
        assert data.test is not None
        assert data.entropy is not None
        rows = data.test[:count]
        truth = data.log_probability(rows)
        assert truth is not None
        return cls(data, rows, truth, data.entropy)

    def score(self, log_probability: Float[np.ndarray, "members rows"]) -> Float[np.ndarray, " members"]:
        """Minus the entropy minus the mean of ``log q(x) - log p(x)``, in nats: see `deep_tempering`."""
        return -self.entropy - (self.truth - log_probability).mean(axis=-1)

    def stderr(self, log_probability: Float[np.ndarray, "members rows"]) -> Float[np.ndarray, " members"]:
        """Standard error of `score` over the choice of rows, in nats."""
        return (self.truth - log_probability).std(axis=-1, ddof=1) / np.sqrt(len(self.truth))


class Trace(NamedTuple):
    """The runs of a method at one rate; all scores in nats.

    - ``updates``: made before each point. ``bottom``: scores of the bottom RBM. ``bound``, ``network``: of the stack
      as a deep belief network, the variational bound and the exact score; None for a single RBM.
    - ``stderr``: of the last bottom scores, over rows. ``moved``: late swaps per step that changed a code.
    - ``distance``: at the end, total variation between a code's laws in its level and in the next one.
    - ``before``: updates of pre-training, all levels of a member together.
    """

    method: Method
    rate: float
    updates: np.ndarray
    bottom: Float[np.ndarray, "seeds points"]
    stderr: Float[np.ndarray, " seeds"]
    bound: Float[np.ndarray, "seeds points"] | None = None
    network: Float[np.ndarray, "seeds points"] | None = None
    moved: Float[np.ndarray, " seeds"] | None = None
    distance: Float[np.ndarray, " seeds"] | None = None
    before: np.ndarray | None = None


def train_method(method: Method, length: Length, scored: Scored, seed: int) -> list[Trace]:
    """All seeds at all rates of a method, members of one ensemble; a `Trace` for every rate.

    Seeds give a method the same first weights at every rate; chains, noise and order of rows are each member's own.
    Nothing stops a run that comes apart: that is part of what is shown.
    """
    rates = np.repeat(method.rates, length.seeds)
    seeds = [member_seed(seed, number) for number in range(length.seeds)] * len(method.rates)
    stacks = [_first(method, one) for one in seeds]
    before = None
    if method.pretrained:
        found = [
            pretrain(stack, length, scored.data, rate, one)
            for stack, rate, one in zip(stacks, rates, seeds, strict=True)
        ]
        stacks, before = [stack for stack, _ in found], np.array([updates for _, updates in found])
    settings = TrainConfig(
        updates=length.updates,
        batch_size=BATCH,
        learning_rate=rates.tolist(),
        final_rate=0.0 if method.improved else rates.tolist(),
        members=len(rates),
        seed=seed,
        initialize=method.improved,
    )
    rule = PCD(chains=BATCH, sampler=method.sampler, offset_rate=0.0, burn_in=0)
    setup = prepare(Ensemble.of(stacks), scored.data, rule, settings, "sgd")
    state, chunk = setup.state, -(-length.updates // length.points)
    index, points = [0], [_scores(state, scored)]
    while index[-1] < length.updates:
        count = min(chunk, length.updates - index[-1])
        state = run_chunk(
            setup.trainer, state, setup.feed, *_whole(chunk, *setup.order.rows(index[-1], count)), count
        )
        index.append(index[-1] + count)
        points.append(_scores(state, scored))
    end = {key: values[:, -1] for key, values in _by_key(points).items()} | _signs(state)
    curves = _by_key(points)
    return [
        _trace(method, float(rate), np.array(index), curves, end, before, place, length.seeds)
        for place, rate in enumerate(method.rates)
    ]


def late(trace: Trace, curve: Float[np.ndarray, "seeds points"]) -> Float[np.ndarray, " seeds"]:
    """Mean of a curve over the last tenth of the updates, for every seed."""
    return curve[:, trace.updates >= 0.9 * trace.updates[-1]].mean(axis=1)


def best_of(traces: Sequence[Trace], label: str, bound: bool = False) -> Trace:
    """Of a model's rates the one whose last tenth is best, by the median over seeds."""

    def worth(trace: Trace) -> float:
        found = float(
            np.median(late(trace, trace.bound if bound and trace.bound is not None else trace.bottom))
        )
        return found if math.isfinite(found) else -math.inf

    return max((trace for trace in traces if trace.method.label == label), key=worth)


def pretrain(stack: DBN, length: Length, data: DataSet, rate: float, seed: int) -> tuple[DBN, int]:
    """A stack whose levels below the top one are trained first, and the updates that took.

    Levels are trained one after the other by SML at a constant rate, each until a report (a twentieth of the run apart)
    finds the exact log-likelihood of what it learns from lower than the report before, and then as it was there.
    """
    run = fit_greedy(
        stack,
        data,
        PCD(chains=BATCH, offset_rate=0.0, burn_in=0),
        updates=length.updates,
        batch_size=BATCH,
        learning_rate=rate,
        final_rate=rate,
        levels=stack.depth - 1,
        initialize=False,
        stop_on_decrease=True,
        seed=seed,
    )
    return run.model, int(run.history[-1]["index"])


def _first(method: Method, seed: int) -> Any:
    scale = LARGE if method.improved else TINY
    if method.depth == 1:
        return RBM(784, HIDDEN, seed=seed, weight_scale=scale)
    return DBN(784, [HIDDEN] * method.depth, seed=seed, weight_scale=scale)


def _whole(
    chunk: int, order: np.ndarray, real: Any, epochs: np.ndarray
) -> tuple[np.ndarray, Any, np.ndarray]:
    """Arrays of a whole chunk's length, so that a short last one compiles nothing new; no batch of these is short."""
    missing = chunk - len(epochs)
    padded = [(0, 0)] * (order.ndim - 2) + [(0, missing), (0, 0)]
    return np.pad(order, padded), real, np.pad(epochs, (0, missing))


def _scores(state: TrainState, scored: Scored) -> dict[str, np.ndarray]:
    """Scores of all members as they are now."""
    model: Any = as_single(state.model)
    bottom = model.level(0) if isinstance(model, AbstractStack) else model
    rows = unnormalised_log_probabilities(bottom, scored.rows) - exact_log_partitions(bottom)[:, None]
    found = {"bottom": scored.score(rows), "stderr": scored.stderr(rows)}
    if not isinstance(model, AbstractStack):
        return found
    stacks = _members(model)
    partitions = np.array([exact_log_partition(stack.top).value for stack in stacks])[:, None]
    bounds = np.stack([exact_bound(stack, scored.rows).value for stack in stacks])
    exact = np.stack([exact_scores(stack, scored.rows).value for stack in stacks])
    return found | {"bound": scored.score(bounds - partitions), "network": scored.score(exact - partitions)}


def _signs(state: TrainState) -> dict[str, np.ndarray]:
    """What the members of a run by deep tempering say of their swaps."""
    sampler, model = state.rule_state.sampler, as_single(state.model)
    if not isinstance(sampler, DeepTemperingState):
        return {}
    return {
        "moved": np.asarray(sampler.moved).mean(axis=1),
        "distance": np.array([max(code_distances(stack)) for stack in _members(model)]),
    }


def _members(stacked: Any) -> list[Any]:
    count = len(jax.tree.leaves(stacked)[0])
    return [jax.tree.map(lambda leaf, at=member: leaf[at], stacked) for member in range(count)]


def _by_key(points: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Curves ``(members, points)``."""
    return {key: np.stack([point[key] for point in points], axis=1) for key in points[0]}


def _trace(
    method: Method,
    rate: float,
    index: np.ndarray,
    curves: dict[str, np.ndarray],
    end: dict[str, np.ndarray],
    before: np.ndarray | None,
    place: int,
    seeds: int,
) -> Trace:
    """The members of one rate."""
    own = slice(place * seeds, (place + 1) * seeds)
    return Trace(
        method,
        rate,
        index,
        bottom=curves["bottom"][own],
        stderr=end["stderr"][own],
        before=None if before is None else before[own],
        **{key: curves[key][own] for key in ("bound", "network") if key in curves},
        **{key: end[key][own] for key in ("moved", "distance") if key in end},
    )
