"""Greedy training of a network of levels: one RBM after the other, each a run of its own on what lies below."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, SupportsIndex

import equinox as eqx
import optax

from harmonium.data.base import DataSet
from harmonium.data.load import as_dataset
from harmonium.energy.base import check_finite
from harmonium.energy.dbm import DBM
from harmonium.energy.rbm import RBM
from harmonium.errors import SettingError
from harmonium.numerics.precision import as_single
from harmonium.rules.base import AbstractRule
from harmonium.rules.names import describe_assistance, describe_rule
from harmonium.samplers.base import AbstractSampler
from harmonium.train import rebuild
from harmonium.train.asked import as_rule, settings_of
from harmonium.train.config import RunConfig, check_levels, read_settings
from harmonium.train.drive import Reporter, Ticker, released
from harmonium.train.fit import resume, start
from harmonium.train.folder import START, RunFolder
from harmonium.train.levels import (
    Network,
    as_network,
    check_rule,
    joined,
    next_level,
    passed_up,
    scored,
    split,
)
from harmonium.train.model_file import load, load_described
from harmonium.train.model_file import save as save_model
from harmonium.train.monitor import Monitor
from harmonium.train.run import History, Run
from harmonium.train.setup import prepare
from harmonium.train.stages import (
    JOINT,
    Greedy,
    joint_settings,
    optimizer_of,
    settings_of_joint,
    settings_of_level,
)

_OF_A_LEVEL = ("learning_rate", "free_energy_gap", "proxy_reconstruction_error", "weight_rms", "hidden_mean")
"""What a line of the whole run repeats of the last line of the level that it is about."""


def fit_greedy(
    model: Network,
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
    joint: Mapping[str, Any] | None = None,
    on_divergence: str = "stop",
    checkpoint_seconds: float = 30.0,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    reporter: Reporter | None = None,
) -> Run:
    r"""Train a deep belief network or a deep Boltzmann machine one level after the other, bottom first.

    Level 0 is an RBM trained on the data, every other one an RBM trained on the hidden units of the level below: their
    probabilities given the rows (given one draw of the layers between), of which bits are drawn afresh in every epoch.
    What lies below is not trained again. A level whose layers are those of the level below upside down starts from that
    level's weights transposed *with its biases*, which leaves :math:`p(v)` as it is at that moment; any other starts
    from the weights that ``model`` has there, and from biases at the marginals of what it learns from.

    The levels of a DBM are trained with twice their parameters, and the ends of it as pairs of copies, so that an inner
    layer hears from one level what it will hear from two; they are put together by halving parameters and summing the
    two biases of an inner layer (`harmonium.energy.doubling`). A learning rate is one of the doubled parameters.

    **Arguments** are those of `fit`, each for every level: ``updates=1000`` are 1000 for each. ``levels`` trains only
    so many from the bottom, such as all but the last before all are trained jointly; ``transposed=False`` leaves
    out that start; with ``stop_on_decrease`` a level ends, where the exact log-likelihood of its training rows first
    falls, with the state of the report before, and the next one begins. ``joint`` trains the network that the levels
    make on, all of it at once: a mapping of arguments of `fit`, such as ``{"rule": hm.PCD(steps=5), "updates": 5000,
    "learning_rate": 0.05}``, where ``rule``, ``epochs`` or ``updates``, ``batch_size``, ``learning_rate``,
    ``final_rate``, ``optimizer``, ``momentum`` and ``weight_decay`` may stand; without ``rule`` it has that of `fit`,
    and of the rest those of the levels. In ``out`` every level is a run folder of its own, ``level-0`` and so on, and
    the joint training another, ``joint``; `resume` goes on with the whole after any interruption, bit for bit.

    **Returns** a `Run` whose ``model`` is the network and whose history has one record for each level, and one for the
    joint training: the log-likelihoods of the network *as far as it is trained*, or bounds of them, where it is a
    machine at all, and for a DBN those of its bottom RBM.

    **Raises** as `fit`; `SettingError` for more ``levels`` than there are. Source: the chapter's deep belief network
    and deep Boltzmann machine; Salakhutdinov and Hinton, "Deep Boltzmann machines" (2009), section 3.1; "Deep
    Tempering" (2014), whose pre-training stops where the likelihood begins to oscillate.

    >>> from harmonium.energy.dbn import DBN
    >>> run = fit_greedy(DBN(4, [3, 4], seed=0), "bars-and-stripes:side=2", updates=100, seed=0)
    >>> [record["level"] for record in run.history]
    [0, 1]
    """
    model = as_network(model)
    check_finite(model)
    rule = as_rule(rule)
    joint_rule, section = joint_settings(joint, model)
    dataset = as_dataset(data)
    config = settings_of(
        dataset,
        model,
        rule,
        optimizer,
        joint=section,
        epochs=epochs,
        updates=updates,
        batch_size=batch_size,
        learning_rate=learning_rate,
        final_rate=final_rate,
        momentum=momentum,
        weight_decay=weight_decay,
        seed=seed,
        initialize=initialize,
        greedy=True,
        levels=levels,
        transposed=transposed,
        stop_on_decrease=stop_on_decrease or None,
        on_divergence=on_divergence,
        checkpoint_seconds=checkpoint_seconds,
    )
    greedy = checked(Greedy(model, rule, optimizer, config, dataset, joint_rule))
    folder = None if out is None else RunFolder.create(out, force=force)
    return start_greedy(greedy, folder, reporter)


def set_up_greedy(config: RunConfig, data: DataSet | None = None) -> Greedy:
    """What `start_greedy` needs, from settings alone: everything is checked and nothing is written. Raises as `fit`."""
    check_levels(config)
    data = rebuild.load_data(config) if data is None else data
    rebuild.check_fingerprint(data, config.data.fingerprint, "the settings")
    rule, joint, model = rebuild.rule(config), rebuild.joint_rule(config), rebuild.model(config, data)
    if not isinstance(model, Network):
        raise SettingError(
            f"train.greedy is of models of several levels, got model.kind={config.model.kind!r}; use dbn or dbm"
        )
    said = config.to_dict()
    resolved = {
        **said,
        "data": rebuild.describe_data(data),
        "sampler": describe_rule(rule) or said["sampler"],
        "mode_assisted": describe_assistance(rule),
    }
    if joint is not None:
        resolved["joint"] = said["joint"] | (describe_rule(joint) or {})
    return checked(Greedy(model, rule, rebuild.optimizer(config), read_settings(resolved), data, joint))


def checked(greedy: Greedy) -> Greedy:
    """The run, all of whose stages can begin, with settings that say that it is greedy and how long a level is."""
    check_levels(greedy.config)
    check_rule(greedy.model, greedy.rule)
    train, levels = greedy.config.train, split(greedy.model)
    if train.levels is not None and train.levels > len(levels):
        raise SettingError(
            f"levels={train.levels} are asked for, but the network has {len(levels)}; leave levels out for all"
        )
    if (train.members or 1) > 1:
        raise SettingError(
            f"members={train.members} (--members) are of models that are trained as a whole; give each "
            "member a run of its own seed, or train all levels at once (--set greedy=false)"
        )
    # As the first level will, and the joint training: what they refuse is refused before anything is made.
    own = settings_of_level(greedy, 0, levels[0], greedy.data)
    prepare(levels[0], greedy.data, greedy.rule, own.train, greedy.optimizer)
    if greedy.joint is not None:
        whole = settings_of_joint(greedy.config, greedy.model)
        prepare(greedy.model, greedy.data, greedy.joint, whole.train, optimizer_of(greedy, whole))
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
            # The models come before the settings: where there are settings, the run can be resumed. That of the start
            # is kept beside what becomes of it, in which the two biases of an inner layer of a DBM are one.
            save_model(as_single(greedy.model), folder.path / START, overwrite=True)
            planned = greedy.levels * greedy.planned + greedy.planned_jointly
            _save(folder, greedy.model, 0, 0, planned, "")
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
        about = load_described(folder.model_path)[1]
        greedy = Greedy(
            load(folder.path / START) if model is None else model,
            rebuild.rule(config) if rule is None else rule,
            rebuild.optimizer(config) if optimizer is None else optimizer,
            config,
            dataset,
            rebuild.joint_rule(config),
        )
        folder.cut_back(about["updates"])
        return _train(greedy, folder, History(folder.read_metrics()), reporter, ticker, about["stages"])


def _train(
    greedy: Greedy,
    folder: RunFolder | None,
    history: History,
    reporter: Reporter | None,
    ticker: Ticker | None,
    saved: int = 0,
) -> Run:
    """Every stage in turn; of those that have been told of, and of the first ``saved``, only the end is read."""
    levels, data = split(greedy.model), greedy.data
    began, done, reason = time.monotonic(), 0, ""

    def tell(record: dict[str, Any], left: int, words: dict[str, Any]) -> None:
        if folder is not None:
            folder.append_metrics(record)
            folder.append_timing({"index": done, "seconds": round(time.monotonic() - began, 3)})
        history.append(record)
        if reporter is not None:
            reporter({**record, **words, "horizon": done + left}, {"index": done})

    for index in range(greedy.levels):
        own = settings_of_level(greedy, index, levels[index], data)
        run = _run_stage(greedy, f"level-{index}", own, levels[index], data, folder, reporter, ticker)
        levels[index] = run.model
        done += run.history[-1]["index"]
        reason = run.reason and f"of level {index} {run.reason}"
        left = 0 if reason else (greedy.levels - index - 1) * greedy.planned + greedy.planned_jointly
        if index + 1 < len(levels) and not reason:
            levels[index + 1] = next_level(run.model, levels[index + 1], greedy.config.train.transposed)
            if index + 1 < greedy.levels or isinstance(greedy.model, DBM):
                data = passed_up(run.model, data, index)
            if index + 1 == greedy.levels and isinstance(greedy.model, DBM):
                levels[index + 1] = _begun(greedy, levels[index + 1], data)
        if index >= len(history):
            tell(_record(greedy, index, levels, run, done), left, {"levels": index + 1})
        if folder is not None and index >= saved:
            _save(folder, joined(greedy.model, levels), index + 1, done, done + left, reason)
        if reason:
            break
    network = as_single(joined(greedy.model, levels))
    if greedy.joint is not None and not reason:
        own = settings_of_joint(greedy.config, network)
        run = _run_stage(greedy, JOINT, own, network, greedy.data, folder, reporter, ticker)
        network, last = run.model, run.history[-1]
        done += last["index"]
        reason = run.reason and f"of the joint training {run.reason}"
        if greedy.levels >= len(history):
            tell({**last, "index": done, "joint": True, "updates_of_joint": last["index"]}, 0, {})
        if folder is not None and greedy.levels >= saved:
            _save(folder, network, greedy.levels + 1, done, done, reason)
    return Run(
        model=network,
        history=history,
        path=None if folder is None else folder.path,
        state=None,
        reliable=not reason,
        reason=reason,
        config=greedy.config.to_dict(),
    )


def _run_stage(
    greedy: Greedy,
    name: str,
    own: RunConfig,
    model: RBM | Network,
    data: DataSet,
    folder: RunFolder | None,
    reporter: Reporter | None,
    ticker: Ticker | None,
) -> Run:
    """The run of a level, or the joint one: begun, gone on with, or read."""
    whose: dict[str, Any] = {"joint": True} if name == JOINT else {"level": int(name.partition("-")[2])}
    rule = greedy.joint if name == JOINT and greedy.joint is not None else greedy.rule
    optimizer = optimizer_of(greedy, own)

    def report(record: dict[str, Any], timing: dict[str, Any]) -> None:
        if reporter is not None:
            reporter({**record, **whose}, timing)

    place = None if folder is None else folder.path / name
    if place is not None and (place / "config.toml").exists():
        custom = None if isinstance(optimizer, str) else optimizer
        return resume(
            place, data=data, rule=rule, model=model, optimizer=custom, reporter=report, ticker=ticker
        )
    setup = prepare(model, data, rule, own.train, optimizer)
    home = None if place is None else RunFolder.create(place, force=True)
    return start(setup, own, data, home, report, ticker)


def _begun(greedy: Greedy, rbm: RBM, data: DataSet) -> RBM:
    """A level that is not trained, at the marginals of what it would learn from: what lies below counts on it."""
    setup = prepare(rbm, data, greedy.rule, greedy.config.train, greedy.optimizer)
    return eqx.tree_at(lambda tree: tree.units, rbm, as_single(setup.state.model).units)


def _record(greedy: Greedy, index: int, levels: list[RBM], run: Run, done: int) -> dict[str, Any]:
    """A line of metrics of the whole run, after a level of it."""
    last = run.history[-1]
    record: dict[str, Any] = {"index": done, "level": index, "updates_of_level": last["index"]}
    record |= {key: last[key] for key in _OF_A_LEVEL if key in last}
    network = scored(greedy.model, levels, index + 1)
    if network is None:
        return record
    setup = prepare(levels[0], greedy.data, greedy.rule, greedy.config.train, greedy.optimizer)
    assert isinstance(setup.monitor, Monitor)
    return record | setup.monitor.scores(network)


def _save(folder: RunFolder, model: Network, stages: int, updates: int, horizon: int, fault: str) -> Path:
    about = {"stages": stages, "updates": updates, "horizon": horizon, "fault": fault}
    return save_model(as_single(model), folder.model_path, overwrite=True, about=about)
