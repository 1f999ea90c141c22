"""Supervised training of an unrolled machine, with dropout."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, SupportsIndex

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from harmonium.data.base import DataSet
from harmonium.data.labels import classes_of, label_numbers
from harmonium.data.load import as_dataset
from harmonium.energy.base import check_finite
from harmonium.energy.dbm import DBM
from harmonium.errors import SettingError
from harmonium.evaluate.likelihood import visible_rows
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise, seed_key, update_words
from harmonium.numerics.whole import is_number, whole_number
from harmonium.train.feed import Order
from harmonium.train.optimizers import build_optimizer
from harmonium.train.run import History, Run
from harmonium.train.schedules import Linear
from harmonium.train.unrolled import Net, Unrolled, pass_upwards

_CHUNK = 256


def fine_tune(
    network: Unrolled,
    data: Any,
    *,
    epochs: SupportsIndex = 100,
    batch_size: SupportsIndex = 50,
    learning_rate: float = 0.003,
    final_rate: float = 0.0,
    optimizer: str = "adam",
    visible_dropout: float = 0.1,
    hidden_dropout: float = 0.3,
    seed: SupportsIndex = 0,
    reporter: Callable[[dict[str, Any]], None] | None = None,
) -> Run:
    r"""Train the network to classify: the mean of :math:`-\log p(y \mid v)` over a batch falls, under dropout.

    Features are computed once, from the machine as it is; weights, feedback and biases move. At every update visible
    units are dropped with probability ``visible_dropout``, and features and hidden units with ``hidden_dropout``; what
    is left is divided by the probability of being left, so that the whole network classifies. The rate falls linearly
    from ``learning_rate`` to ``final_rate``. No split decides when to stop: where ``data`` have a ``valid`` split with
    labels its error is only reported. Every row counts alike, whatever its weight in ``data``.

    **Returns** a `Run` whose ``model`` is the network, with numpy arrays of single precision, and whose history has a
    record of every epoch: ``index`` (updates), ``epoch``, ``cross_entropy_train`` (nats per row, under dropout) and
    ``error_valid``, a fraction. The same seed gives the same network on the same machine and build. A run is short, and
    has no folder: keep the network by `harmonium.save`.

    **Raises** `DataError` for rows that do not fit or have no labels, `SettingError` for a setting out of range.
    Source: the chapter's figure of the deep Boltzmann machine as a classifier, panel d.

    >>> machine = DBM(64, [16, 8], labels=10, seed=0)
    >>> run = fine_tune(Unrolled.of(machine), "digits", epochs=1, seed=0)
    >>> [record["index"] for record in run.history]
    [28]
    """
    if not isinstance(network, Unrolled):
        raise SettingError(
            f"a network such as hm.Unrolled.of(machine) is fine-tuned, got {type(network).__name__}"
        )
    check_finite(network.machine)
    for name, rate in (("visible_dropout", visible_dropout), ("hidden_dropout", hidden_dropout)):
        if not is_number(rate) or not 0 <= rate < 1:
            raise SettingError(f"{name} is a fraction of at least 0 and below 1, got {rate!r}; pass e.g. 0.3")
    count = whole_number(epochs, "epochs must be a whole number of at least 1")
    dataset = as_dataset(data)
    classes = classes_of(dataset, len(network.biases[-1]))
    rows = jnp.asarray(visible_rows(network.machine, dataset, "train"))
    labels = label_numbers(dataset, "train", classes)
    if (labels < 0).any():
        raise SettingError(
            f"{int((labels < 0).sum())} of the training rows of {dataset.name} have no known label; leave them out"
        )
    size = whole_number(batch_size, "batch_size must be a whole number of at least 1")
    key = seed_key(seed)
    order = Order(key, len(rows), size)
    method, schedule = build_optimizer(optimizer), Linear(learning_rate, final_rate)
    net: Net = jax.tree.map(jnp.asarray, as_single(network.net))
    network = as_single(network)
    held_out = _held_out(network, dataset, classes)
    features = _features_program()(network, rows)
    state, history = method.init(net), History()
    program = _epoch_program()
    length = min(order.per_epoch, _CHUNK)
    horizon = jnp.int32(count * order.per_epoch)
    for epoch in range(count):
        total, done = 0.0, 0
        while done < order.per_epoch:
            first, some = epoch * order.per_epoch + done, min(length, order.per_epoch - done)
            places, real, _ = order.rows(first, length)
            net, state, loss = program(
                method,
                (float(visible_dropout), float(hidden_dropout)),
                network.machine,
                (net, state),
                (rows, features, jnp.asarray(labels)),
                places,
                real,
                update_words(key, jnp.arange(first, first + length)),
                schedule,
                jnp.int32(first),
                horizon,
                jnp.int32(some),
            )
            total, done = total + float(loss), done + some
        record: dict[str, Any] = {
            "index": (epoch + 1) * order.per_epoch,
            "epoch": epoch + 1,
            "cross_entropy_train": total / len(rows),
        }
        if held_out is not None:
            record["error_valid"] = held_out(net)
        history.append(record)
        if reporter is not None:
            reporter(record)
    return Run(model=as_single(network.with_net(net)), history=history, path=None, state=None)


def _held_out(network: Unrolled, data: DataSet, classes: Any) -> Callable[[Net], float] | None:
    """The error of a network with other parameters on the validation rows, as far as their labels are known."""
    if data.valid is None or "valid" not in (data.labels or {}):
        return None
    known = label_numbers(data, "valid", classes)
    rows, known = visible_rows(network.machine, data, "valid")[known >= 0], known[known >= 0]
    if len(rows) == 0:
        return None
    features = _features_program()(network, rows)

    def error(net: Net) -> float:
        logits = _plain_program()(network.machine, net, rows, features)
        return float(np.mean(np.argmax(np.asarray(logits), axis=1) != known))

    return error


@cache
def _features_program():
    def program(network: Unrolled, rows: Array) -> Any:
        return network.features(rows.astype(jnp.float32))

    return compile_function(program)


@cache
def _plain_program():
    def program(machine: DBM, net: Net, rows: Array, features: Any) -> Array:
        return pass_upwards(machine, net, rows.astype(jnp.float32), features)

    return compile_function(program)


@cache
def _epoch_program():
    def program(
        method: optax.GradientTransformation,
        dropout: tuple[float, float],
        machine: DBM,
        carry: tuple[Net, Any],
        known: tuple[Array, Any, Array],
        places: Int[Array, "updates batch"],
        real: Float[Array, "updates batch"] | None,
        words: Array,
        schedule: Linear,
        first: Int[Array, ""],
        horizon: Int[Array, ""],
        count: Int[Array, ""],
    ) -> tuple[Net, Any, Float[Array, ""]]:
        rows, features, labels = known

        def update(position: Array, carry: Any) -> Any:
            net, state, total = carry
            chosen = places[position]
            weight = jnp.ones(chosen.shape, jnp.float32) if real is None else real[position]

            def loss(net: Net) -> Float[Array, ""]:
                logits = pass_upwards(
                    machine,
                    net,
                    rows[chosen].astype(jnp.float32),
                    tuple(means[chosen] for means in features),
                    Noise.of(words[position]),
                    dropout,
                )
                each = optax.softmax_cross_entropy_with_integer_labels(logits, labels[chosen])
                return jnp.sum(weight * each) / jnp.sum(weight)

            value, gradient = jax.value_and_grad(loss)(net)
            moves, state = method.update(gradient, state, net)
            rate = schedule.rate(first + position, jnp.int32(0), horizon)
            net = jax.tree.map(lambda leaf, move: leaf + rate * move, net, moves)
            return net, state, total + value * jnp.sum(weight)

        return jax.lax.fori_loop(0, count, update, (*carry, jnp.float32(0)))

    return compile_function(program, static_argnums=(0, 1))
