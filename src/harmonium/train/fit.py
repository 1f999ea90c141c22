"""Training in one call, and going on with what was begun."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from harmonium.data.base import DataSet
from harmonium.data.load import as_dataset
from harmonium.energy.base import AbstractEnergyModel, check_finite, check_model
from harmonium.energy.dbm import DBM
from harmonium.energy.ensemble import Ensemble
from harmonium.energy.stack import AbstractStack
from harmonium.errors import HarmoniumWarning, SettingError
from harmonium.numerics.whole import whole_number
from harmonium.rules.base import AbstractAdaptiveRule, AbstractRule
from harmonium.rules.names import describe_rule
from harmonium.samplers.base import AbstractSampler
from harmonium.train import rebuild
from harmonium.train.asked import as_rule, settings_of
from harmonium.train.codes import alarm_of
from harmonium.train.config import RunConfig, check_levels, read_settings
from harmonium.train.drive import Drive, Reporter, Ticker, on_device, released
from harmonium.train.ensemble import reason_of, stopped_members
from harmonium.train.folder import RunFolder
from harmonium.train.memory import check_members
from harmonium.train.run import History, Run
from harmonium.train.schedules import Rates
from harmonium.train.setup import Setup, prepare
from harmonium.train.storage import DamagedFileError


def fit(
    model: AbstractEnergyModel | Ensemble,
    data: Any,
    rule: AbstractRule | AbstractSampler | None = None,
    *,
    epochs: SupportsIndex | None = None,
    updates: SupportsIndex | None = None,
    batch_size: SupportsIndex = 100,
    learning_rate: Rates | None = None,
    final_rate: Rates | None = None,
    optimizer: str | optax.GradientTransformation = "sgd",
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    members: SupportsIndex | None = None,
    seed: SupportsIndex = 0,
    initialize: bool = True,
    stop_on_decrease: bool = False,
    on_divergence: str = "stop",
    checkpoint_seconds: float = 30.0,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    reporter: Reporter | None = None,
) -> Run:
    r"""Train a model on data.

    **Arguments:**

    - ``model``: the model to start from; it is not changed. Training computes in float32.
    - ``data``: a `DataSet`, an array of rows, a sparse matrix, a data frame, a data name or a path.
    - ``rule``: how to train, such as ``hm.PCD(steps=1, chains=256)`` (the default is ``hm.PCD()``) or ``hm.CD(1)``.
      A sampler such as ``hm.ParallelTempering(rungs=10)`` stands for ``hm.PCD(sampler=...)``, with 100 chains. Of a
      `DBM`, both of these infer its hidden layers by mean field.
    - ``epochs`` or ``updates``: how long; neither means 10 000 updates.
    - ``batch_size``: rows per update; the last batch of an epoch is short if it must be, and a batch larger than the
      data is the whole data. Chains are independent of it.
    - ``learning_rate``: the first rate (0.3 for SGD, 0.01 for other methods when None), falling linearly to
      ``final_rate`` (0 when None). Of either a sequence gives every one of ``members`` its own.
    - ``optimizer``: a name of `optax` ("sgd", "adam", ...) or an optax transformation, which then carries its own
      rate and is multiplied by ``learning_rate`` (1 when None) all along.
    - ``momentum`` (SGD only), ``weight_decay`` (couplings only).
    - ``members``: how many independent models to train at once; ``run.model`` is then an `Ensemble`. Each has its own
      start, chains, noise and order of rows, those of a run alone with the seed ``member_seed(seed, i)``. A model whose
      biases are all zero counts as fresh: member 0 starts from it, and every other one from weights of its own, normal
      with the root mean square of the given ones. Of any other model all members start as copies. An `Ensemble` as
      ``model`` gives every member its start, and their number.
    - ``seed``: of chains, row order and every draw.
    - ``initialize``: start a model whose biases are all zero at the marginals of the data.
    - ``stop_on_decrease``: once the exact log-likelihood of the training rows has risen, end at the first report that
      finds it lower than the report before, with the state of that report before. Raises `SettingError` where it costs
      too much.
    - ``on_divergence``: "stop" keeps the last good model and says so; "halve" goes back and halves the rate.
    - ``out``: a folder to keep the run in, so that it survives any interruption; see `resume`. ``force`` replaces an
      earlier run there. Checkpoints are written every ``checkpoint_seconds``.
    - ``reporter``: called with every metrics record and timing record.

    **Returns** a `Run`. When the guard stopped it, ``run.reliable`` is False and a `HarmoniumWarning` is given.

    **Raises** `DataError` for rows that do not fit the visible units, `SettingError` for a setting out of range,
    `FileError` for a folder that holds something, `RunBusyError` for one in use. On an interrupt the last complete
    chunk is saved in ``out``, if there is one, and `KeyboardInterrupt` goes on.

    >>> from harmonium.energy.rbm import RBM
    >>> run = fit(RBM(4, 2, seed=0), "bars-and-stripes:side=2", updates=100, seed=0)
    >>> run.history[-1]["index"]
    100
    """
    template = model.member(0) if isinstance(model, Ensemble) else model
    rule = as_rule(rule, "mean-field" if isinstance(template, DBM) else "exact")
    if isinstance(model, Ensemble):
        members = _count_of(model, members)
    else:
        check_model(model)
    check_finite(model)
    dataset = as_dataset(data)
    config = settings_of(
        dataset,
        template,
        rule,
        optimizer,
        epochs=epochs,
        updates=updates,
        batch_size=batch_size,
        learning_rate=learning_rate,
        final_rate=final_rate,
        momentum=momentum,
        weight_decay=weight_decay,
        members=members,
        seed=seed,
        initialize=initialize,
        greedy=False if isinstance(template, AbstractStack) else None,
        stop_on_decrease=stop_on_decrease or None,
        on_divergence=on_divergence,
        checkpoint_seconds=checkpoint_seconds,
    )
    if not isinstance(model, Ensemble):
        check_members(config.train, template, rule, len(dataset.train))
    start_of_all = model if isinstance(model, Ensemble) else rebuild.members_like(model, config, dataset)
    config = rebuild.with_classes(config, template, dataset)
    setup = prepare(start_of_all, dataset, rule, config.train, optimizer)
    folder = None if out is None else RunFolder.create(out, force=force)
    return start(setup, config, dataset, folder, reporter)


def resume(
    path: str | os.PathLike[str],
    *,
    epochs: SupportsIndex | None = None,
    updates: SupportsIndex | None = None,
    data: Any = None,
    rule: AbstractRule | None = None,
    model: AbstractEnergyModel | None = None,
    optimizer: optax.GradientTransformation | None = None,
    reporter: Reporter | None = None,
    ticker: Ticker | None = None,
) -> Run:
    """Go on with the run in a folder.

    An interrupted run goes on to its horizon and ends bit for bit where the unbroken run would have ended, on the same
    machine and build. A finished run is left as it is, byte for byte. ``epochs`` or ``updates`` ask for more: from
    where the run stands they start a new stretch, whose learning rate falls again from the first rate over its own
    length; what was left of the stretch before is dropped. Interrupted in its turn, a new stretch is gone on with by
    `resume` without a number. Stopped members of an ensemble stay as they are; where all are stopped nothing is
    trained, and a `HarmoniumWarning` says so.

    ``data``, ``rule``, ``model`` and ``optimizer`` are needed only where the run was started from objects that no
    settings can describe.

    Raises `FileError` when there is no run, `SettingError` when more is asked of a network that was trained level by
    level or of one of its levels, `FileError` when more is asked of one whose newest checkpoint is damaged (without a
    number the run goes on from the one before), `RunBusyError` when another process is writing it, `DataError` when the
    data are no longer what they were.

    >>> from harmonium.energy.rbm import RBM
    >>> run = fit(RBM(4, 2, seed=0), "bars-and-stripes:side=2", updates=100, seed=0, out="runs/longer")
    >>> resume("runs/longer", updates=100).history[-1]["index"]
    200
    """
    if epochs is not None and updates is not None:
        raise SettingError(f"both epochs={epochs} and updates={updates} are given; keep one of them")
    further = epochs if updates is None else updates
    count = 0 if further is None else _count_of_more("epochs" if updates is None else "updates", further)
    if read_settings(RunFolder.open(path).read_config()).is_greedy:
        from harmonium.train.greedy import resume_greedy  # whose levels are runs that come back here

        if further is not None:
            raise SettingError(
                f"the run in {path} trained one level after the other and goes no further; train the network on in a "
                "new run, from hm.load_run(path).model"
            )
        return resume_greedy(
            path, data=data, rule=rule, model=model, optimizer=optimizer, reporter=reporter, ticker=ticker
        )
    with released(RunFolder.open(path).lock()) as folder:
        config = read_settings(folder.read_config())
        if further is not None and (whole := rebuild.network_of(folder.path)) is not None:
            raise SettingError(
                f"the run in {path} is {_part(folder.path)} of the network in {whole}, which would no longer hold it "
                "as it is; copy the folder elsewhere to go further with it"
            )
        dataset = rebuild.load_data_again(folder, config, data)
        again = rebuild.model(config, dataset) if model is None else model
        rebuild.with_classes(config, again.member(0) if isinstance(again, Ensemble) else again, dataset)
        setup = prepare(
            _shaped_like(again, config),
            dataset,
            rebuild.rule(config) if rule is None else rule,
            config.train,
            rebuild.optimizer(config) if optimizer is None else optimizer,
        )
        found = folder.checkpoints.latest(setup.state, resized=_resized(setup))
        if found is None:
            raise rebuild.never_began(path)
        if found.damaged and further is not None:
            raise DamagedFileError(
                f"the checkpoint of {path} after {found.damaged[0]} updates is damaged and the newest whole one is of "
                f"{found.index}; resume without a number first, which makes the updates between them again, and then "
                "go further"
            )
        state = jax.tree.map(on_device, setup.state, found.tree)
        folder.cut_back(found.index)
        history = History(folder.read_metrics())
        members = config.train.members or 1
        if further is not None and members > 1 and len(stopped_members(history)) == members:
            warnings.warn(
                f"all {members} members of the run in {path} are stopped and stay so, so that nothing is trained; "
                "start a new run with a smaller learning rate",
                HarmoniumWarning,
                stacklevel=2,
            )
            further = None
        more = None if further is None else count if epochs is None else count * setup.order.per_epoch
        if more is not None:
            horizon = (state.index + more).astype(jnp.int32)
            state = eqx.tree_at(lambda tree: (tree.start, tree.horizon), state, (state.index, horizon))
        if int(state.index) < int(state.horizon):
            for change in folder.environment_changes():
                warnings.warn(
                    f"{change}, so bits may differ from the unbroken run's", HarmoniumWarning, stacklevel=2
                )
        drive = Drive(
            setup._replace(state=state),
            folder=folder,
            history=history,
            on_divergence=config.train.on_divergence,
            checkpoint_seconds=config.train.checkpoint_seconds,
            reporter=reporter,
            ticker=ticker,
            saved_index=found.index if more is None else None,
            stop_on_decrease=bool(config.train.stop_on_decrease),
        )
        # A new stretch is on the disk before its first update, so that it too survives any interruption.
        drive.save()
        return _finish(drive, config)


def set_up(config: RunConfig, data: DataSet | None = None) -> tuple[Setup, RunConfig, DataSet]:
    """What `start` needs, from settings alone: everything is checked and nothing is written.

    ``data`` are used instead of what the settings name, but must have the fingerprint that the settings may hold.

    **Returns** the setup, the settings with what was left out filled in, and the data. **Raises** as `fit`.
    """
    check_levels(config)
    data = rebuild.load_data(config) if data is None else data
    rebuild.check_fingerprint(data, config.data.fingerprint, "the settings")
    rule = rebuild.rule(config)
    if config.model.labels is not None:
        config = rebuild.with_classes(config, rebuild.model(config, data), data)
    if (config.train.members or 1) > 1:
        check_members(config.train, rebuild.model(config, data), rule, len(data.train))
    setup = prepare(rebuild.members(config, data), data, rule, config.train, rebuild.optimizer(config))
    resolved = {
        **config.to_dict(),
        "data": {**rebuild.describe_data(data), "label_fingerprint": config.data.label_fingerprint},
        "sampler": describe_rule(rule) or config.to_dict()["sampler"],
    }
    return setup, read_settings(resolved), data


def start(
    setup: Setup,
    config: RunConfig,
    data: DataSet,
    folder: RunFolder | None,
    reporter: Reporter | None = None,
    ticker: Ticker | None = None,
) -> Run:
    """Run what has been set up, in a locked folder if there is one; the lock is let go at the end."""
    train = config.train.model_copy(
        update={
            "updates": None if config.train.epochs else int(setup.state.horizon),
            "learning_rate": _plain_rate(setup.trainer.schedule.first),
            "final_rate": _plain_rate(setup.trainer.schedule.last),
        }
    )
    config = config.model_copy(update={"train": train})
    with released(folder):
        drive = Drive(
            setup,
            folder=folder,
            on_divergence=train.on_divergence,
            checkpoint_seconds=train.checkpoint_seconds,
            reporter=reporter,
            ticker=ticker,
            stop_on_decrease=bool(train.stop_on_decrease),
        )
        if folder is not None:
            if data.source.get("array"):
                rebuild.keep_data(folder, data, labelled=config.data.label_fingerprint is not None)
            folder.write_environment()
            # The state comes before the settings: where there are settings, the run can be resumed.
            drive.save()
            folder.write_config(config.to_dict())
        return _finish(drive, config)


def _part(path: Path) -> str:
    """What the run in this folder is to the network that it is of."""
    return "the joint training" if path.absolute().name == "joint" else "a level"


def _plain_rate(rate: Any) -> float | list[float]:
    """A rate, or one for each member, as settings hold it."""
    return np.asarray(rate).tolist()


def _count_of_more(name: str, value: SupportsIndex) -> int:
    return whole_number(value, f"{name} must be a whole number of at least 1", most=2**31 - 1)


def _finish(drive: Drive, config: RunConfig) -> Run:
    drive.run()
    members = config.train.members or 1
    reason = drive.fault or reason_of(drive.stopped, members)
    if reason:
        warnings.warn(f"training {reason}" if members == 1 else reason, HarmoniumWarning, stacklevel=3)
    alarm = alarm_of(drive.history[-1]) if drive.history else None
    if alarm:
        warnings.warn(alarm, HarmoniumWarning, stacklevel=3)
    return Run(
        model=drive.model(),
        history=drive.history,
        path=None if drive.folder is None else drive.folder.path,
        state=drive.state,
        reliable=not reason,
        reason=reason,
        config=config.to_dict(),
    )


def _count_of(ensemble: Ensemble, members: SupportsIndex | None) -> int:
    """How many members an ensemble begins with, and that no other number was asked for."""
    if members is not None and members != len(ensemble):
        raise SettingError(
            f"members={members} are asked for, but the ensemble given has {len(ensemble)}; leave members out"
        )
    if len(ensemble) == 1:
        raise SettingError("an ensemble of one member is trained as a model; pass ensemble.member(0)")
    return len(ensemble)


def _shaped_like(model: AbstractEnergyModel | Ensemble, config: RunConfig) -> AbstractEnergyModel | Ensemble:
    """What a run's state has the form of; its numbers come from a checkpoint."""
    count = config.train.members or 1
    return model if count == 1 or isinstance(model, Ensemble) else Ensemble.of([model] * count)


def _resized(setup: Setup) -> str | None:
    """The part of a state whose shapes a run may have changed since it began."""
    rule = setup.trainer.rule
    return "tree.rule_state" if isinstance(rule, AbstractAdaptiveRule) and rule.changes_shapes else None
