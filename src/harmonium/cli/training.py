"""The work behind ``train`` and ``resume``: a run under the eyes of a person, who may interrupt it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harmonium.cli.cache import keep_compiled_programs
from harmonium.cli.interrupts import tell_interrupted
from harmonium.cli.outcome import conclude
from harmonium.cli.output import say
from harmonium.cli.progress import Watch
from harmonium.data.base import DataSet
from harmonium.train import rebuild
from harmonium.train.config import RunConfig, read_settings
from harmonium.train.fit import resume, set_up, start
from harmonium.train.folder import RunFolder
from harmonium.train.greedy import set_up_greedy, start_greedy


def train_and_conclude(
    settings: RunConfig, config_path: Path | None, out: Path | None, force: bool, as_json: bool
) -> int:
    """Check everything, make the run folder, train in it, and say how good the model is; the exit status."""
    keep_compiled_programs()
    path: Path | None = None
    try:
        given = _data_beside(config_path, settings)
        if settings.is_greedy:
            greedy = set_up_greedy(settings, given)
            folder = RunFolder.create(out, name=f"{settings.model.kind}-{_stem(greedy.data)}", force=force)
            path = folder.path
            words = f"{greedy.levels} levels of {greedy.planned} updates, one after the other"
            if greedy.joint is not None:
                words += f", then {greedy.planned_jointly} of all together"
            say(f"training {_words(greedy.config, greedy.data)}, {words}; run folder {path}")
            with Watch() as watch:
                run = start_greedy(greedy, folder, watch.report, watch.tick)
            return conclude(run, greedy.data, path, as_json, draw=True)
        setup, resolved, data = set_up(settings, given)
        folder = RunFolder.create(out, name=f"{settings.model.kind}-{_stem(data)}", force=force)
        path = folder.path
        say(f"training {_words(resolved, data)}, {int(setup.state.horizon)} updates; run folder {path}")
        with Watch() as watch:
            run = start(setup, resolved, data, folder, watch.report, watch.tick)
        return conclude(run, data, path, as_json, draw=True)
    except KeyboardInterrupt:
        raise tell_interrupted(path) from None


def resume_and_conclude(path: Path, epochs: int | None, updates: int | None, as_json: bool) -> int:
    """Go on with a run, and say how good its model is; the exit status."""
    keep_compiled_programs()
    try:
        folder = RunFolder.open(path)
        data = rebuild.load_data_again(folder, read_settings(folder.read_config()))
        with Watch() as watch:
            run = resume(
                path, epochs=epochs, updates=updates, data=data, reporter=watch.report, ticker=watch.tick
            )
        moved = watch.calls > 0
        if not moved and run.reliable:
            further = (
                "" if read_settings(run.config).is_greedy else "; --epochs N or --updates N goes further"
            )
            say(f"the run in {path} is finished and left as it is{further}")
        return conclude(run, data, path, as_json, draw=moved)
    except KeyboardInterrupt:
        raise tell_interrupted(path) from None


def _data_beside(config_path: Path | None, settings: RunConfig) -> DataSet | None:
    """The rows that a run folder keeps, where its own config.toml is the one in use and the rows came as arrays."""
    if config_path is None or not settings.data.array:
        return None
    return rebuild.load_data_again(RunFolder.open(config_path.parent), settings)


def _stem(data: DataSet) -> str:
    return Path(data.name).stem or data.name


def _words(config: RunConfig, data: DataSet) -> str:
    values: dict[str, Any] = config.sampler.model_dump(exclude_none=True)
    chains = f" with {values['chains']} chains" if "chains" in values else ""
    sizes = " x ".join(str(size) for size in (data.width, *config.model.hidden) if size)
    sizes += f" x {config.model.labels} labels" if config.model.labels else ""
    rows = "1 row" if len(data.train) == 1 else f"{len(data.train)} rows"
    members = config.train.members or 1
    article = "an" if config.model.kind == "rbm" else "a"
    whose = (
        f"{article} {config.model.kind}" if members == 1 else f"an ensemble of {members} {config.model.kind}s"
    )
    rule = f"{values['name']}-{values['steps']}" if "steps" in values else f"{values['name']} gradient"
    assisted = ", assisted by modes" if config.mode_assisted.enabled else ""
    if assisted and config.mode_assisted.baseline_steps:
        assisted = f", unassisted, with {config.mode_assisted.baseline_steps} sweeps in the place of modes"
    inference = (
        f", {values['inference']} inference" if config.model.kind == "dbm" and "inference" in values else ""
    )
    return f"{whose} {sizes} on {data.name} ({rows}) by {rule}{chains}{inference}{assisted}"
