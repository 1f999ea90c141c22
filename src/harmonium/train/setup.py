"""From settings and data to everything the host loop needs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from harmonium.data.base import DataSet
from harmonium.data.binarization import draw_binary
from harmonium.data.labels import classes_of, label_numbers
from harmonium.data.support import encode
from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.ensemble import Ensemble
from harmonium.energy.guided import AbstractGuided
from harmonium.energy.independent import field_of_marginals
from harmonium.energy.labels import label_units
from harmonium.energy.stack import AbstractStack
from harmonium.errors import DataError, SettingError
from harmonium.evaluate.likelihood import observed_rows
from harmonium.inference.clamped import are_coupled
from harmonium.inference.exact import Exact
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import BEYOND_UPDATES, key_words, seed_key
from harmonium.rules.base import AbstractAdaptiveRule, AbstractRule
from harmonium.rules.contrastive import Contrastive
from harmonium.train.config import TrainConfig
from harmonium.train.ensemble import Orders, first_member_states, member_seed
from harmonium.train.ensemble_monitor import EnsembleMonitor
from harmonium.train.feed import Feed, Order, binarization_words
from harmonium.train.loop import Trainer
from harmonium.train.monitor import Monitor
from harmonium.train.optimizers import build_optimizer
from harmonium.train.schedules import Linear, Rates
from harmonium.train.state import TrainState
from harmonium.typing import Batch
from harmonium.units.categorical import Categorical

DEFAULT_RATE = 0.3
"""Learning rate of plain SGD when none is given; see docs/decisions."""

DEFAULT_ADAPTIVE_RATE = 0.01
"""Learning rate of every other named optimiser when none is given."""

DEFAULT_UPDATES = 10_000

_INIT_TAG = BEYOND_UPDATES | 0x1217
_SHARED_TAG = BEYOND_UPDATES | 0x5A4ED
_LONGEST_CHUNK = 5000
SHORTEST_CHUNK = 100
"""Fewest updates that are compiled into one call, as far as the horizon allows."""

_CHUNK_OPERATIONS = 2e10
_REPORTS = 20


class Setup(NamedTuple):
    """A run ready to start: what makes updates, where it starts, and what watches it."""

    trainer: Trainer
    state: TrainState
    feed: Feed
    order: Order | Orders
    monitor: Monitor | EnsembleMonitor


def prepare(
    model: AbstractEnergyModel | Ensemble,
    data: DataSet,
    rule: AbstractRule,
    settings: TrainConfig,
    optimizer: str | optax.GradientTransformation,
) -> Setup:
    """Check data against model, put the rows on the device, and build the state before the first update.

    Of an ensemble every member is begun as it would be in a run alone with its own seed.

    Raises `DataError` for rows that the visible units cannot take and `SettingError` for settings out of range.
    """
    ensemble = model if isinstance(model, Ensemble) else None
    if ensemble is not None and isinstance(rule, AbstractAdaptiveRule) and rule.changes_shapes:
        raise SettingError(
            "members of an ensemble have arrays of one shape, which this rule changes as it goes; take a schedule that "
            "adds no rungs, such as schedule='learned'"
        )
    model = model.member(0) if isinstance(model, Ensemble) else model
    units = model.units[model.observed[0]]
    labels = label_units(model)
    numbers = None if labels is None else _training_labels(data, labels, rule)
    stochastic = data.binarization == "stochastic"
    rows = encode(
        data.train,
        units.ends,
        "the training rows",
        width=units.size,
        binarization=data.binarization,
        columns=data.columns,
    ).rows
    weight = None
    if data.weight is not None:
        # Rows of zero weight take no part: not in batches, not in means, not in the count of an epoch.
        kept = np.flatnonzero(data.weight)
        rows, weight = rows[kept], np.asarray(data.weight, np.float32)[kept]
        numbers = None if numbers is None else numbers[kept]
    key = seed_key(settings.seed)
    keys = [seed_key(member_seed(settings.seed, member)) for member in range(len(ensemble or ()))]
    order = (
        Orders(keys, len(rows), settings.batch_size) if keys else Order(key, len(rows), settings.batch_size)
    )
    updates = settings.updates or (settings.epochs * order.per_epoch if settings.epochs else DEFAULT_UPDATES)
    if updates >= 2**31:
        raise SettingError(
            f"epochs={settings.epochs} are {updates} updates, more than 32 bits count; choose fewer"
        )
    mean = np.average(rows, axis=0, weights=weight).astype(np.float32)
    if stochastic:
        low, high = units.ends
        mean = low + (high - low) * mean

    shares = None
    if labels is not None and numbers is not None:
        shares = _class_shares(numbers, weight, labels.states)

    def begun(model: AbstractEnergyModel) -> AbstractEnergyModel:
        model = as_single(model)
        return biases_from_data(model, mean, len(rows), shares) if settings.initialize else model

    words = None
    if stochastic:
        words = jnp.stack([binarization_words(one) for one in keys]) if keys else binarization_words(key)
    feed = Feed(jnp.asarray(rows), None if weight is None else jnp.asarray(weight), words, units.ends)
    if numbers is not None:
        feed = replace(feed, label=jnp.asarray(numbers))
    rate = settings.learning_rate
    if rate is None:
        rate = (
            DEFAULT_RATE
            if optimizer == "sgd"
            else DEFAULT_ADAPTIVE_RATE
            if isinstance(optimizer, str)
            else 1.0
        )
    last = settings.final_rate
    if last is None:
        # A transformation of one's own carries its own rate and schedule.
        last = 0.0 if isinstance(optimizer, str) else rate
    trainer = Trainer(
        rule,
        build_optimizer(optimizer, momentum=settings.momentum, weight_decay=settings.weight_decay),
        _schedule(rate, last, len(keys)),
    )
    # The rule sees the whole data as one row of means: it starts offsets and chains from nothing else.
    batch = Batch(x=jnp.asarray(mean[None]))
    if ensemble is None:
        first = begun(model)
        rule_state = _first_rule_state(rule, jax.random.fold_in(key, _INIT_TAG), first, batch)
        parameters: Any = jax.tree.map(jnp.asarray, first)
        optimizer_state = trainer.optimizer.init(parameters)
    else:
        parameters = jax.tree.map(jnp.asarray, Ensemble.of(map(begun, ensemble)).stacked)
        starts = jnp.stack([jax.random.fold_in(one, _INIT_TAG) for one in keys])
        optimizer_state, rule_state = first_member_states(rule, trainer.optimizer, starts, parameters, batch)
    state = TrainState(
        model=parameters,
        optimizer_state=optimizer_state,
        rule_state=rule_state,
        index=jnp.int32(0),
        start=jnp.int32(0),
        horizon=jnp.int32(updates),
        chunk=jnp.int32(chunk_length(model, order.batch_size, updates, len(keys) or 1)),
        key=jnp.stack(keys) if keys else key,
        shared_key=jax.random.fold_in(key, _SHARED_TAG),
        rate_scale=jnp.ones(len(keys), jnp.float32) if keys else jnp.float32(1.0),
    )
    probe = draw_binary(rows, 0, units.ends) if stochastic else rows
    if labels is not None and numbers is not None and np.all(numbers >= 0):
        probe = np.concatenate([probe, np.eye(labels.states, dtype=probe.dtype)[numbers]], axis=1)
    held_out = None
    for split in ("valid", "test"):
        if split in data.splits():
            held_out = (split, observed_rows(model, data, split))
            break
    coupled = 0
    if are_coupled(model) and not isinstance(model, AbstractStack):
        coupled = sum(layer.size for i, layer in enumerate(model.units) if i not in model.observed)
    monitor = Monitor(rule, probe, held_out, weight, len(units.support), coupled)
    return Setup(trainer, state, feed, order, EnsembleMonitor(monitor) if keys else monitor)


def _schedule(first: Rates, last: Rates, members: int) -> Linear:
    """The schedule of all, or, where either end is one of each member, with a leading member axis."""
    if isinstance(first, float | int) and isinstance(last, float | int):
        return Linear(first, last)
    return Linear(*(np.broadcast_to(np.asarray(one, np.float32), (members,)) for one in (first, last)))


def _first_rule_state(rule: AbstractRule, key: Array, model: AbstractEnergyModel, batch: Batch) -> Any:
    arrays, settings = eqx.partition(rule, eqx.is_array)
    return _init_program()(settings, arrays, key, model, batch)


@cache
def _init_program():
    def program(settings, arrays, key, model, batch):
        return eqx.combine(arrays, settings).init(key_words(key), model, batch)

    return compile_function(program, static_argnums=0)


def _training_labels(data: DataSet, labels: Categorical, rule: AbstractRule) -> np.ndarray:
    """The number of every training row's class, from 0, or -1 where it is not known.

    Raises `DataError` for data without labels or with others than those of the label layer, and `SettingError` for
    labels that are not known and a rule that must know them.
    """
    numbers = label_numbers(data, "train", classes_of(data, labels.states))
    count = int(np.sum(numbers < 0))
    free = isinstance(rule, Contrastive) and rule.persistent and not isinstance(rule.inference, Exact)
    if count and not free:
        raise SettingError(
            f"{count} training rows of {data.name} have labels that are not known (-1), which only persistent chains "
            "with inference='mean-field' or 'gibbs' (--sampler pcd --inference mean-field) learn from; leave such rows "
            "out"
        )
    if count == len(numbers):
        raise DataError(
            f"none of the {count} training labels of {data.name} is known (all are -1); give some"
        )
    return numbers


def _class_shares(numbers: np.ndarray, weight: np.ndarray | None, states: int) -> np.ndarray:
    """How often each class occurs among the rows whose label is known, in all 1."""
    known = numbers >= 0
    counts = np.bincount(numbers[known], None if weight is None else weight[known], minlength=states)
    return (counts / counts.sum()).astype(np.float32)


def biases_from_data(
    model: AbstractEnergyModel, mean: np.ndarray, count: int, shares: np.ndarray | None = None
) -> AbstractEnergyModel:
    """Start a fresh model at the data's marginals.

    Only a model all of whose biases are exactly zero counts as fresh; any other is returned as it is. Visible biases
    become the field of the column means (smoothed by one row of each value, so that a constant column stays finite),
    those of a label layer that of the ``shares`` of the classes, and, in coordinates centred at those means, hidden
    biases stay zero.
    """
    if any(np.any(np.asarray(units.bias)) for units in model.units):
        return model
    units = model.units[0]
    bias = field_of_marginals(units, mean, count).astype(np.float32)
    centred = eqx.tree_at(lambda tree: tree.units[0].bias, model, bias)
    if isinstance(model, AbstractGuided):
        # The guide too begins at the marginals: of the data, and of hidden layers at rest.
        even = jnp.concatenate([units.bias for units in centred.units[: model.height : 2]])
        centred = eqx.tree_at(lambda tree: tree.guide.units[0].bias, centred, even)
    if shares is not None:
        top = field_of_marginals(model.units[-1], shares, count).astype(np.float32)
        centred = eqx.tree_at(lambda tree: tree.units[-1].bias, centred, top)
    rest = (jnp.asarray(other.mean(other.natural())) for other in centred.units[1:])
    offsets = (jnp.asarray(mean), *rest)
    return as_single(centred.from_centred(offsets))


def chunk_length(model: AbstractEnergyModel, batch_size: int, updates: int, members: int = 1) -> int:
    """Updates per compiled call: enough work to hide the host, few enough to report about twenty times a run.

    A function of sizes alone, never of the clock, so that a run is the same on a faster machine. ``members`` share a
    call, so that an interrupt waits no longer for many of them than for one.
    """
    pairs = sum(leaf.size for leaf in jax.tree.leaves(model.couplings))
    work = 10.0 * pairs * batch_size + 100.0 * batch_size * sum(units.size for units in model.units)
    by_work = min(_LONGEST_CHUNK, max(SHORTEST_CHUNK, int(_CHUNK_OPERATIONS / (work * members))))
    return max(SHORTEST_CHUNK, min(by_work, -(-updates // _REPORTS)))


def chunks_per_report(state: TrainState) -> int:
    """How many chunks lie between two reports."""
    stretch = int(state.horizon) - int(state.start)
    return max(1, round(stretch / (_REPORTS * int(state.chunk))))
