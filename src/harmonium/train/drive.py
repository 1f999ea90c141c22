"""The host loop: compiled chunks, and between them reports, checkpoints and the divergence guard."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.ensemble import Ensemble
from harmonium.errors import FileError, SettingError
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import BEYOND_UPDATES, key_words
from harmonium.rules.base import AbstractAdaptiveRule, AbstractRule
from harmonium.train.assistance import mode_signs
from harmonium.train.checkpoint import Checkpoints, load_tree
from harmonium.train.codes import swap_signs
from harmonium.train.ensemble import CURE, chosen, reason_of, run_members, stopped_members
from harmonium.train.folder import RunFolder
from harmonium.train.interrupts import patient_interrupts
from harmonium.train.loop import Trainer
from harmonium.train.model_file import can_save, load_described
from harmonium.train.model_file import save as save_model
from harmonium.train.outside import error_within, sampler_metrics
from harmonium.train.run import History
from harmonium.train.setup import Setup, chunks_per_report
from harmonium.train.state import TrainState

Reporter = Callable[[dict[str, Any], dict[str, Any]], None]
"""Called with every metrics record and its timing record."""

Ticker = Callable[[int, int], None]
"""Called after every compiled call with the updates done and the horizon."""

Folder = TypeVar("Folder", RunFolder, None, RunFolder | None)

_MOST_HALVINGS = 30
_BETWEEN_TAG = BEYOND_UPDATES | 0xBE7


class Drive:
    """Moves one run from its state to its horizon.

    Every decision (where chunks end, when to report, whether the run has diverged) is a function of the state, so that
    a run interrupted anywhere and resumed goes through the same states and writes the same metrics. Only *when*
    checkpoints are written depends on the clock.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        folder: RunFolder | None = None,
        history: History | None = None,
        on_divergence: str = "stop",
        checkpoint_seconds: float = 30.0,
        reporter: Reporter | None = None,
        ticker: Ticker | None = None,
        saved_index: int | None = None,
        stop_on_decrease: bool = False,
    ):
        self.setup = setup
        self.state = setup.state
        self.folder = folder
        self.history = History() if history is None else history
        self.on_divergence = on_divergence
        self.checkpoint_seconds = checkpoint_seconds
        self.reporter = reporter
        self.ticker = ticker
        self.stop_on_decrease = stop_on_decrease
        self.fault: str | None = None
        self.stopped: dict[int, str] = stopped_members(self.history)
        self._saved_index = saved_index
        if self.stopped and len(self.stopped) == self.state.rate_scale.size:
            self._end()
        self._watched: TrainState | None = None
        self._checkpoints: Checkpoints | None = None if folder is None else folder.checkpoints
        self._saved_at = time.monotonic()
        self._began = time.monotonic()
        self._began_index = int(self.state.index)

    def run(self) -> None:
        """Train to the horizon, or until the guard stops the run; on an interrupt save first, then raise it.

        A first Ctrl-C ends the run after the chunk that is being computed, a second one at once, with the last
        complete chunk. Raises `KeyboardInterrupt` when the state has been saved, also when another one comes while it
        is being saved.
        """
        with patient_interrupts() as interrupt_here:
            try:
                if int(self.state.index) == 0 and not self.history:
                    record, _ = self._record(self.state, self.setup.monitor.health(self.state))
                    if self.stop_on_decrease:
                        check_watched(record)
                    self._tell(*self._report(record))
                    self._watched = self.state
                while int(self.state.index) < int(self.state.horizon) and self.fault is None:
                    interrupt_here()
                    self._advance()
            finally:
                # Also on an interrupt: the state is that of the last complete chunk.
                try:
                    self.save()
                except KeyboardInterrupt:
                    self.save()
                    raise

    def save(self) -> None:
        """Write the present state and its model, unless they are already there.

        The model comes first: a checkpoint at the horizon is what makes a run finished, and a finished run must have
        its model. The other way round a kill between the two would leave a finished run with an old one.
        """
        index = int(self.state.index)
        if self.folder is not None and self._checkpoints is not None:
            self._save_model(self.folder, unless_there=self._saved_index == index)
            if self._saved_index != index:
                told = self.history[-1]["index"] if self.stop_on_decrease and self.history else None
                self._checkpoints.save(index, self.state, also=told)
                self._saved_index = index
        self._saved_at = time.monotonic()

    def model(self) -> AbstractEnergyModel | Ensemble:
        """The model, or the ensemble, as it is now."""
        model = as_single(self.state.model)
        if self.state.key.ndim == 0:
            return model
        members = range(len(self.state.key))
        return Ensemble(model, [self.stopped.get(member, "") for member in members] if self.stopped else ())

    def _save_model(self, folder: RunFolder, unless_there: bool) -> None:
        """The model with what became of its training; nothing for a class that model files do not know."""
        model = self.model()
        if not can_save(model):
            return
        state = self.state
        about = {"updates": int(state.index), "horizon": int(state.horizon), "fault": self.fault or ""}
        if not (unless_there and _holds(folder, model, about)):
            save_model(model, folder.model_path, overwrite=True, about=about)

    def _advance(self) -> None:
        """One chunk; ends at the next absolute multiple of the chunk length or at the horizon."""
        before = self.state
        index, chunk, horizon = int(before.index), int(before.chunk), int(before.horizon)
        count = min((index // chunk + 1) * chunk, horizon) - index
        order, real, epochs = self.setup.order.rows(index, count)
        after = run_chunk(
            self.setup.trainer, before, self.setup.feed, *_padded(chunk, order, real, epochs), count
        )
        health: Any = self.setup.monitor.health(after)
        done = index + count
        faults = self.setup.monitor.faults(after, health)
        record = None
        if not faults and (done == horizon or (done // chunk) % chunks_per_report(after) == 0):
            record, faults = self._record(after, health)
        if faults:
            kept = self._handle(faults, before, after, done)
            if kept is None:
                return
            # Told at once: where a member was stopped stands in the record alone.
            after = kept
            record, _ = self._record(after, self.setup.monitor.health(after))
        if record is not None and self.stop_on_decrease and has_decreased(self.history, record):
            self._go_back()
            return
        if done % chunk == 0:
            after = between_chunks(self.setup.trainer.rule, after)
        report = None if record is None else self._report(record)
        # Only now, when all lines up to it are in the logs: an interrupt in the middle of the report must save the
        # state of before, or the resumed run would lack the line.
        self.state = after
        if report is not None:
            self._tell(*report)
            if self.stop_on_decrease:
                self._watched = after
                self.save()
        if self.ticker is not None:
            self.ticker(done, horizon)
        if time.monotonic() - self._saved_at >= self.checkpoint_seconds:
            self.save()

    def _go_back(self) -> None:
        """End where the last report was made, after which the likelihood fell: its state is now that of the horizon."""
        index = self.history[-1]["index"]
        kept = self._watched
        if kept is None or int(kept.index) != index:
            kept = self._read_back(index)
        self.state = eqx.tree_at(lambda state: state.horizon, kept, jnp.int32(index))
        self._saved_index = None
        if self.ticker is not None:
            self.ticker(index, index)

    def _read_back(self, index: int) -> TrainState:
        """The state of a report that an earlier process made, from its checkpoint."""
        assert self._checkpoints is not None
        rule = self.setup.trainer.rule
        grown = isinstance(rule, AbstractAdaptiveRule) and rule.changes_shapes
        path = self._checkpoints.path(index)
        tree, _ = load_tree(path, self.setup.state, resized="tree.rule_state" if grown else None)
        return jax.tree.map(on_device, self.setup.state, tree)

    def _handle(
        self, faults: dict[int, str], before: TrainState, after: TrainState, done: int
    ) -> TrainState | None:
        """Go back to before the chunk and try again at half the rate, or stop: the run, or members of an ensemble.

        Returns the state to go on with where only members were stopped: each at what it was before the chunk.
        """
        index, scale = int(before.index), np.asarray(before.rate_scale)
        hit = np.reshape([member in faults for member in range(scale.size)], scale.shape)
        can_halve = hit & (scale > 2.0**-_MOST_HALVINGS)
        if self.on_divergence == "halve" and can_halve.any():
            halved = jnp.asarray(np.where(can_halve, scale / 2, scale), jnp.float32)
            self.state = eqx.tree_at(lambda state: state.rate_scale, before, halved)
            # The checkpoint of this index, if there is one, holds the rate that failed.
            self._saved_index = None
            return None
        rates = np.ravel(
            np.asarray(self.setup.trainer.schedule.rate(before.index, before.start, before.horizon)) * scale
        )
        words = {
            member: f"diverged between updates {index} and {done} at learning rate {rates[member]:.3g}: {fault}"
            for member, fault in faults.items()
        }
        if scale.ndim == 0:
            self.fault = f"{words[0]}; {CURE}"
            return None
        if not np.any((scale > 0) & ~hit):
            # What stood in no record would be forgotten, and the members trained again by whoever goes further.
            self.stopped |= words
            report = self._report(self._record(before, self.setup.monitor.health(before))[0])
            self._end()
            self._tell(*report)
            return None
        self.stopped |= words
        stopping = eqx.tree_at(lambda state: state.rate_scale, before, jnp.zeros_like(before.rate_scale))
        return chosen(jnp.asarray(~hit), after, stopping)

    def _end(self) -> None:
        """No member is left in training: none has a rate, which the next checkpoint keeps, and the run is over."""
        self.fault = reason_of(self.stopped, self.state.rate_scale.size)
        if np.any(np.asarray(self.state.rate_scale)):
            still = jnp.zeros_like(self.state.rate_scale)
            self.state = eqx.tree_at(lambda state: state.rate_scale, self.state, still)
            self._saved_index = None

    def _record(self, state: TrainState, health: Any) -> tuple[dict[str, Any], dict[int, str]]:
        """What is to be said of a state, and the faults that it shows."""
        rate = self.setup.trainer.schedule.rate(state.index, state.start, state.horizon) * state.rate_scale
        epoch = int(state.index) / self.setup.order.per_epoch
        index, apart = int(state.index), int(state.chunk) * chunks_per_report(state)
        number = None if index == int(state.horizon) else index // apart
        record, faults = self.setup.monitor.report(state, health, np.asarray(rate), epoch, number)
        record |= swap_signs(state) | mode_signs(state) | sampler_metrics(state.rule_state)
        if self.stopped:
            record["stopped"] = {str(member): words for member, words in sorted(self.stopped.items())}
        return record, faults

    def _report(self, record: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Write a record, and the time it came at, to the history and the logs."""
        index = record["index"]
        seconds = time.monotonic() - self._began
        made = index - self._began_index
        timing = {
            "index": index,
            "seconds": round(seconds, 3),
            "updates_per_second": round(made / seconds, 1) if made else None,
            "seconds_left": round(seconds / made * (int(self.state.horizon) - index), 1) if made else None,
        }
        if self.folder is not None:
            self.folder.append_metrics(record)
            self.folder.append_timing(timing)
        self.history.append(record)
        return record, timing

    def _tell(self, record: dict[str, Any], timing: dict[str, Any]) -> None:
        if self.reporter is not None:
            self.reporter({**record, "horizon": int(self.state.horizon)}, timing)


def check_watched(record: dict[str, Any]) -> None:
    """Raise `SettingError` where reports carry no likelihood that could be seen to fall."""
    if "log_likelihood_train" not in record:
        raise SettingError(
            "stop_on_decrease watches the exact log-likelihood of the training rows, which costs too much for this "
            "model; leave it out, or train fewer hidden units"
        )


def has_decreased(history: History, record: dict[str, Any]) -> bool:
    """Whether the log-likelihood of the training rows is below that of the last report, which was above the first's.

    A model that starts at the marginals of its data first loses a little to the noise of the gradient.
    """
    if not history:
        return False
    first, last = (line["log_likelihood_train"] for line in (history[0], history[-1]))
    return record["log_likelihood_train"] < last > first


def on_device(like: Any, leaf: Any) -> Any:
    """A leaf of a state that was read from a file, where the next update needs it."""
    return leaf if jnp.issubdtype(like.dtype, jax.dtypes.prng_key) else jnp.asarray(leaf)


def between_chunks(rule: AbstractRule, state: TrainState) -> TrainState:
    """The state after what the rule does on the host between chunks: a function of the state alone.

    For members of an ensemble, whose arrays have one shape, nothing is done.
    """
    if not isinstance(rule, AbstractAdaptiveRule) or not rule.adapts or state.key.ndim:
        return state
    key = jax.random.fold_in(jax.random.fold_in(state.key, _BETWEEN_TAG), state.index)
    changed = rule.between(key_words(key), state.model, state.rule_state)
    return eqx.tree_at(lambda tree: tree.rule_state, state, changed)


def _holds(folder: RunFolder, model: Any, about: dict[str, Any]) -> bool:
    """Whether the model file of a run is there and says the same."""
    try:
        found, known = load_described(folder.model_path)
    except FileError:
        return False
    if known != about or jax.tree.structure(model) != jax.tree.structure(found):
        return False
    return all(jax.tree.leaves(jax.tree.map(np.array_equal, model, found)))


def run_chunk(
    trainer: Trainer,
    state: TrainState,
    feed: Any,
    order: np.ndarray,
    real: np.ndarray | None,
    epochs: np.ndarray,
    count: int,
) -> TrainState:
    """`Trainer.run_chunk`, compiled once per kind of rule, optimiser and set of shapes, whatever the rates are."""
    arrays, settings = eqx.partition(trainer.rule, eqx.is_array)
    program = _chunk_program()
    unit = None if state.key.ndim == 0 else np.ones(len(state.key), np.float32)
    try:
        return program(
            settings,
            trainer.optimizer,
            arrays,
            trainer.schedule,
            state,
            feed,
            order,
            real,
            epochs,
            count,
            unit,
        )
    except jax.errors.JaxRuntimeError as error:
        raise error_within(error) or error from error


@cache
def _chunk_program():
    def program(settings, optimizer, arrays, schedule, state, feed, order, real, epochs, count, unit):
        trainer = Trainer(eqx.combine(arrays, settings), optimizer, schedule)
        if unit is not None:
            return run_members(trainer, state, feed, order, real, epochs, count, unit)
        return trainer.run_chunk(state, feed, order, real, epochs, count)[0]

    return compile_function(program, static_argnums=(0, 1))


def _padded(
    chunk: int, order: np.ndarray, real: np.ndarray | None, epochs: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Arrays of a whole chunk's length, so that a short last chunk compiles nothing new."""
    missing = chunk - order.shape[-2]
    if missing == 0:
        return order, real, epochs
    of_members = ((0, 0),) * (order.ndim - 2)
    order = np.pad(order, (*of_members, (0, missing), (0, 0)))
    real = None if real is None else np.pad(real, ((0, missing), (0, 0)), constant_values=1)
    return order, real, np.pad(epochs, (0, missing))


@contextmanager
def released(folder: Folder) -> Iterator[Folder]:
    """Let go of a run folder's lock at the end, whatever happens."""
    try:
        yield folder
    finally:
        if folder is not None:
            folder.release()
