"""Greedy training of a deep belief network: one RBM after the other, each a run of its own on what lies below."""

from __future__ import annotations

import os
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

import jax.numpy as jnp
import numpy as np
import optax

from harmonium.data.base import DataSet
from harmonium.data.binarization import draw_binary
from harmonium.data.load import as_dataset
from harmonium.data.support import encode
from harmonium.energy.base import check_finite
from harmonium.energy.dbn import DBN
from harmonium.energy.names import describe_model
from harmonium.energy.rbm import RBM
from harmonium.errors import SettingError
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_single
from harmonium.rules.base import AbstractRule
from harmonium.rules.contrastive import PCD
from harmonium.rules.names import describe_assistance, describe_rule
from harmonium.samplers.base import AbstractSampler
from harmonium.train import rebuild
from harmonium.train.config import RunConfig, check_levels, read_settings
from harmonium.train.drive import Reporter, Ticker, released
from harmonium.train.fit import resume, start
from harmonium.train.folder import RunFolder
from harmonium.train.model_file import load_described
from harmonium.train.model_file import save as save_model
from harmonium.train.monitor import Monitor
from harmonium.train.run import History, Run
from harmonium.train.setup import DEFAULT_UPDATES, prepare

_BLOCK = 4096

_OF_A_LEVEL = ("learning_rate", "free_energy_gap", "proxy_reconstruction_error", "weight_rms", "hidden_mean")
"""What a line of the whole run repeats of the last line of the level that it is about."""


class Greedy(NamedTuple):
    """A greedy run ready to start: the network, how every level is trained, the settings, and the data."""

    model: DBN
    rule: AbstractRule
    optimizer: str | optax.GradientTransformation
    config: RunConfig
    data: DataSet

    @property
    def levels(self) -> int:
        """How many levels are trained, from the bottom."""
        return self.config.train.levels or self.model.depth

    @property
    def planned(self) -> int:
        """Updates of every level, where none stops before."""
        train = self.config.train
        per_epoch = -(-len(self.data.train) // train.batch_size)
        return train.updates or (train.epochs * per_epoch if train.epochs else DEFAULT_UPDATES)


def fit_greedy(
    model: DBN,
    data: Any,
    rule: AbstractRule | AbstractSampler | None = None,
    *,
    epochs: SupportsIndex | None = None,
    updates: SupportsIndex | None = None,
    batch_size: SupportsIndex = 100,
    learning_rate: float | None = None,
    final_rate: float | None = None,
    optimizer: str | optax.GradientTransformation = "sgd",
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    seed: SupportsIndex = 0,
    initialize: bool = True,
    levels: SupportsIndex | None = None,
    transposed: bool = True,
    stop_on_decrease: bool = False,
    on_divergence: str = "stop",
    checkpoint_seconds: float = 30.0,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    reporter: Reporter | None = None,
) -> Run:
    r"""Train a deep belief network one level after the other, bottom first.

    Level 0 is an RBM trained on the data, every other one an RBM trained on the hidden units of the level below: their
    probabilities given the rows (given one draw of the layers between), of which bits are drawn afresh in every epoch.
    What lies below is not trained again. A level whose layers are those of the level below upside down starts from that
    level's weights transposed *with its biases*, which leaves :math:`p(v)` as it is at that moment; any other starts
    from the weights that ``model`` has there, and from biases at the marginals of what it learns from.

    **Arguments** are those of `fit`, each for every level: ``updates=1000`` are 1000 for each. ``levels`` trains only
    so many from the bottom, such as all but the last before `fit` trains the stack jointly; ``transposed=False`` leaves
    out that start; with ``stop_on_decrease`` a level ends, where the exact log-likelihood of its training rows first
    falls, with the state of the report before, and the next one begins. In ``out`` every level is a run folder of its
    own, ``level-0`` and so on, and `resume` goes on with the whole after any interruption, bit for bit.

    **Returns** a `Run` whose ``model`` is the network and whose history has one record for each level: the
    log-likelihoods of the network *as far as it is trained*, or bounds of them, and those of its bottom RBM.

    **Raises** as `fit`; `SettingError` for more ``levels`` than there are. Source: the chapter's deep belief network;
    "Deep Tempering" (2014), whose pre-training stops where the likelihood begins to oscillate.

    >>> run = fit_greedy(DBN(4, [3, 4], seed=0), "bars-and-stripes:side=2", updates=100, seed=0)
    >>> [record["level"] for record in run.history]
    [0, 1]
    """
    if not isinstance(model, DBN):
        raise SettingError(
            f"a DBN such as hm.DBN(64, [32, 16]) is trained level by level, got {type(model).__name__}; use hm.fit"
        )
    check_finite(model)
    if rule is None or isinstance(rule, AbstractSampler):
        rule = PCD(sampler=rule)
    if not isinstance(rule, AbstractRule):
        what = getattr(rule, "__name__", repr(rule))
        raise SettingError(
            f"a rule such as hm.PCD() is needed, got {what}; pass one with its settings, hm.PCD(steps=1)"
        )
    dataset = as_dataset(data)
    config = read_settings(
        {
            "data": rebuild.describe_data(dataset),
            "model": describe_model(model) or {"kind": rebuild.CUSTOM},
            "sampler": describe_rule(rule) or {"name": rebuild.CUSTOM},
            "mode_assisted": describe_assistance(rule),
            "train": {
                "epochs": epochs,
                "updates": updates,
                "batch_size": batch_size,
                "optimizer": optimizer if isinstance(optimizer, str) else rebuild.CUSTOM,
                "learning_rate": learning_rate,
                "final_rate": final_rate,
                "momentum": momentum,
                "weight_decay": weight_decay,
                "seed": seed,
                "initialize": initialize,
                "greedy": True,
                "levels": levels,
                "transposed": transposed,
                "stop_on_decrease": stop_on_decrease or None,
                "on_divergence": on_divergence,
                "checkpoint_seconds": checkpoint_seconds,
            },
        }
    )
    greedy = checked(Greedy(model, rule, optimizer, config, dataset))
    folder = None if out is None else RunFolder.create(out, force=force)
    return start_greedy(greedy, folder, reporter)


def set_up_greedy(config: RunConfig, data: DataSet | None = None) -> Greedy:
    """What `start_greedy` needs, from settings alone: everything is checked and nothing is written. Raises as `fit`."""
    data = rebuild.load_data(config) if data is None else data
    rebuild.check_fingerprint(data, config.data.fingerprint, "the settings")
    rule, model = rebuild.rule(config), rebuild.model(config, data)
    if not isinstance(model, DBN):
        raise SettingError(
            f"train.greedy is of models of several levels, got model.kind={config.model.kind!r}; use dbn"
        )
    resolved = {
        **config.to_dict(),
        "data": rebuild.describe_data(data),
        "sampler": describe_rule(rule) or config.to_dict()["sampler"],
        "mode_assisted": describe_assistance(rule),
    }
    return checked(Greedy(model, rule, rebuild.optimizer(config), read_settings(resolved), data))


def checked(greedy: Greedy) -> Greedy:
    """The run, all of whose levels can begin, with settings that say that it is greedy and how long a level is."""
    check_levels(greedy.config)
    train = greedy.config.train
    if train.levels is not None and train.levels > greedy.model.depth:
        raise SettingError(
            f"levels={train.levels} are asked for, but the network has {greedy.model.depth}; leave levels out for all"
        )
    if (train.members or 1) > 1:
        raise SettingError(
            f"members={train.members} (--members) are of models that are trained as a whole; give each "
            "member a run of its own seed, or train all levels at once (--set greedy=false)"
        )
    # As the first level will: rows and settings that it refuses are refused before anything is made.
    own = _settings_of(greedy, 0, greedy.model.level(0), greedy.data)
    prepare(greedy.model.level(0), greedy.data, greedy.rule, own.train, greedy.optimizer)
    said = {"greedy": True, "updates": None if train.epochs else greedy.planned}
    config = greedy.config.model_copy(update={"train": train.model_copy(update=said)})
    return greedy._replace(config=config)


def start_greedy(
    greedy: Greedy,
    folder: RunFolder | None,
    reporter: Reporter | None = None,
    ticker: Ticker | None = None,
) -> Run:
    """Run what has been set up, in a locked folder if there is one; the lock is let go at the end."""
    with released(folder):
        if folder is not None:
            if greedy.data.source.get("array"):
                rebuild.keep_data(folder, greedy.data)
            folder.write_environment()
            # The model comes before the settings: where there are settings, the run can be resumed.
            _save(folder, greedy.model, 0, 0, greedy.levels * greedy.planned, "")
            folder.write_config(greedy.config.to_dict())
        return _train(greedy, folder, History(), reporter, ticker)


def resume_greedy(
    path: str | os.PathLike[str],
    *,
    data: Any = None,
    rule: AbstractRule | None = None,
    model: Any = None,
    optimizer: optax.GradientTransformation | None = None,
    reporter: Reporter | None = None,
    ticker: Ticker | None = None,
) -> Run:
    """Go on with a greedy run in a folder: with the level that is not finished, then with those above it.

    Arguments and errors are those of `resume`. The model that the run began with is kept in its folder.
    """
    with released(RunFolder.open(path).lock()) as folder:
        config = read_settings(folder.read_config())
        dataset = rebuild.load_data_again(folder, config, data)
        found, about = load_described(folder.model_path)
        greedy = Greedy(
            found if model is None else model,
            rebuild.rule(config) if rule is None else rule,
            rebuild.optimizer(config) if optimizer is None else optimizer,
            config,
            dataset,
        )
        folder.cut_back(about["updates"])
        return _train(
            greedy, folder, History(folder.read_metrics()), reporter, ticker, about["trained_levels"]
        )


def _train(
    greedy: Greedy,
    folder: RunFolder | None,
    history: History,
    reporter: Reporter | None,
    ticker: Ticker | None,
    saved: int = 0,
) -> Run:
    """Every level in turn; of those that have been told of, and of the first ``saved``, only the end is read."""
    levels, data = list(greedy.model.levels), greedy.data
    began, done, reason = time.monotonic(), 0, ""
    for index in range(greedy.levels):
        run = _train_level(greedy, index, levels[index], data, folder, reporter, ticker)
        levels[index] = run.model
        done += run.history[-1]["index"]
        reason = run.reason and f"of level {index} {run.reason}"
        left = 0 if reason else (greedy.levels - index - 1) * greedy.planned
        if index + 1 < len(levels) and not reason:
            levels[index + 1] = next_level(run.model, levels[index + 1], greedy.config.train.transposed)
        if index >= len(history):
            record = _record(greedy, index, levels, run, done)
            if folder is not None:
                folder.append_metrics(record)
                folder.append_timing({"index": done, "seconds": round(time.monotonic() - began, 3)})
            history.append(record)
            if reporter is not None:
                reporter({**record, "levels": index + 1, "horizon": done + left}, {"index": done})
        if folder is not None and index >= saved:
            _save(folder, DBN.of(levels), index + 1, done, done + left, reason)
        if reason:
            break
        if index + 1 < greedy.levels:
            data = passed_up(run.model, data, index)
    return Run(
        model=as_single(DBN.of(levels)),
        history=history,
        path=None if folder is None else folder.path,
        state=None,
        reliable=not reason,
        reason=reason,
        config=greedy.config.to_dict(),
    )


def _train_level(
    greedy: Greedy,
    index: int,
    rbm: RBM,
    data: DataSet,
    folder: RunFolder | None,
    reporter: Reporter | None,
    ticker: Ticker | None,
) -> Run:
    """A level's run: begun, gone on with, or read."""

    def report(record: dict[str, Any], timing: dict[str, Any]) -> None:
        if reporter is not None:
            reporter({**record, "level": index}, timing)

    place = None if folder is None else folder.path / f"level-{index}"
    if place is not None and (place / "config.toml").exists():
        custom = greedy.optimizer if not isinstance(greedy.optimizer, str) else None
        return resume(
            place, data=data, rule=greedy.rule, model=rbm, optimizer=custom, reporter=report, ticker=ticker
        )
    own = _settings_of(greedy, index, rbm, data)
    setup = prepare(rbm, data, greedy.rule, own.train, greedy.optimizer)
    home = None if place is None else RunFolder.create(place, force=True)
    return start(setup, own, data, home, report, ticker)


def _settings_of(greedy: Greedy, index: int, rbm: RBM, data: DataSet) -> RunConfig:
    """The settings of one level's run; its seed is the network's for the bottom level, and derived from it above."""
    train = greedy.config.train
    seed = train.seed
    if index:
        state = np.random.SeedSequence([train.seed, index]).generate_state(1, np.uint64)
        seed = int(state[0] >> np.uint64(1))
    own = train.model_copy(update={"seed": seed, "greedy": None, "levels": None, "transposed": None})
    return read_settings(
        {
            "data": rebuild.describe_data(data),
            "model": describe_model(rbm) or {"kind": rebuild.CUSTOM},
            "sampler": greedy.config.sampler.model_dump(exclude_none=True),
            "train": own.model_dump(exclude_none=True),
        }
    )


def next_level(below: RBM, fresh: RBM, transposed: bool | None = True) -> RBM:
    """What a level starts from: the level below upside down where its layers are the same, else what it is."""
    same = [(units.kind, units.size) for units in fresh.units] == [
        (units.kind, units.size) for units in below.units[::-1]
    ]
    if transposed is False or not same:
        return fresh
    given = below.parameters()
    return RBM.from_arrays(
        given["weights"].T,
        given["hidden_bias"],
        given["visible_bias"],
        visible=below.units[1].kind,
        hidden=below.units[0].kind,
    )


def passed_up(rbm: RBM, data: DataSet, seed: int) -> DataSet:
    """What the level above learns from: probabilities of the hidden units, of which bits are drawn in every epoch.

    Rows that are probabilities themselves are drawn once, by ``draw_binary(rows, seed)``.
    """
    units = rbm.units[0]
    splits: dict[str, Any] = {}
    for split, given in data.splits().items():
        rows = encode(
            given, units.support, f"the {split} rows", width=units.size, binarization=data.binarization
        ).rows
        if data.binarization == "stochastic":
            rows = draw_binary(rows, seed, units.support)
        blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
        splits[split] = np.concatenate(
            [np.asarray(_probability_program()(as_single(rbm), block)) for block in blocks]
        )
    name = f"hidden units of level {seed} on {data.name}"
    return DataSet(name, **splits, weight=data.weight, binarization="stochastic")


@cache
def _probability_program():
    def probabilities(rbm: RBM, rows: Any) -> Any:
        upper = rbm.units[1]
        low, high = upper.support
        field = upper.natural() + rbm.couplings[0].forward(jnp.asarray(rows, jnp.float32))
        return jnp.clip((upper.mean(field) - low) / (high - low), 0, 1)

    return compile_function(probabilities)


def _record(greedy: Greedy, index: int, levels: list[RBM], run: Run, done: int) -> dict[str, Any]:
    """A line of metrics of the whole run, after a level of it."""
    last = run.history[-1]
    record: dict[str, Any] = {"index": done, "level": index, "updates_of_level": last["index"]}
    record |= {key: last[key] for key in _OF_A_LEVEL if key in last}
    setup = prepare(levels[0], greedy.data, greedy.rule, greedy.config.train, greedy.optimizer)
    assert isinstance(setup.monitor, Monitor)
    return record | setup.monitor.scores(DBN.of(levels[: index + 1]))


def _save(folder: RunFolder, model: DBN, levels: int, updates: int, horizon: int, fault: str) -> Path:
    about = {"trained_levels": levels, "updates": updates, "horizon": horizon, "fault": fault}
    return save_model(as_single(model), folder.model_path, overwrite=True, about=about)
