"""Runs that are killed on purpose, again and again, and what they must end as: what the tests and the benchmark share.

Every attempt at a run is a process of its own, forked from a server that has imported everything and computed nothing,
so that an attempt costs what the run costs. An attempt goes on from whatever the attempt before has left behind.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import jax
import numpy as np

import harmonium as hm
from harmonium.train.atomic import is_part
from harmonium.train.checkpoint import Checkpoints
from harmonium.train.drive import Reporter
from harmonium.train.faults import VARIABLE
from harmonium.train.folder import LOCK

DONE, FAILED, INTERRUPTED = 0, 1, 130
"""How an attempt ends when nothing kills it."""

Begin = Callable[[Path, Reporter], hm.Run]


@dataclass(frozen=True)
class Scenario:
    """A small run of some kind: how it begins, and how many updates are added once it has finished."""

    begin: Begin
    updates: int
    more: int = 0
    diverges: bool = False


@cache
def digits() -> hm.DataSet:
    """The data of the runs (read on first use, so that importing this file costs nothing)."""
    return hm.load_data("digits")


def fit(path: Path, reporter: Reporter, rule: Any, updates: int, **settings: Any) -> hm.Run:
    """A run that is saved after every compiled call: 100 updates, the shortest call there is."""
    arguments = {"model": hm.RBM(64, 16, seed=1), "data": digits(), "seed": 2, **settings}
    return hm.fit(
        arguments.pop("model"), arguments.pop("data"), rule, updates=updates, checkpoint_seconds=0, out=path,
        force=True, reporter=reporter, **arguments,
    )  # fmt: skip


def persistent(path: Path, reporter: Reporter) -> hm.Run:
    return fit(path, reporter, hm.PCD(chains=64), 550)


def ragged(path: Path, reporter: Reporter) -> hm.Run:
    settings = {"batch_size": 96, "momentum": 0.8, "weight_decay": 1e-3, "learning_rate": 0.05}
    return fit(path, reporter, hm.CD(2), 600, **settings)


def weighted(path: Path, reporter: Reporter) -> hm.Run:
    weight = np.random.default_rng(3).gamma(1.0, size=1400) * (np.arange(1400) % 7 > 0)
    data = hm.load_data({"train": digits().train, "test": digits().test}, weight=weight)
    return fit(path, reporter, hm.PCD(chains=48), 600, data=data, optimizer="adam", learning_rate=0.01)


def stochastic(path: Path, reporter: Reporter) -> hm.Run:
    data = hm.load_data("digits", binarize="stochastic")
    return fit(path, reporter, hm.PCD(steps=2, chains=32), 600, data=data)


def spins(path: Path, reporter: Reporter) -> hm.Run:
    data = {split: 2.0 * rows - 1 for split, rows in digits().splits().items() if split != "test"}
    model = hm.RBM(hm.Spin(64), hm.Spin(12), seed=4)
    return fit(path, reporter, hm.PCD(chains=32), 450, data=data, model=model, learning_rate=0.02)


def halved(path: Path, reporter: Reporter) -> hm.Run:
    settings = {"learning_rate": 0.3, "final_rate": 1000.0, "on_divergence": "halve"}
    return fit(path, reporter, hm.PCD(chains=32), 600, **settings)


def stopped(path: Path, reporter: Reporter) -> hm.Run:
    """The rate rises until the guard has to stop the run."""
    return fit(path, reporter, hm.PCD(chains=32), 600, learning_rate=0.3, final_rate=300.0)


def watched(path: Path, reporter: Reporter) -> hm.Run:
    """Chains that cannot follow: the likelihood falls after some reports, and the run ends at the one before."""
    settings = {"learning_rate": 0.1, "final_rate": 0.1, "stop_on_decrease": True, "batch_size": 14}
    model = hm.RBM(9, 6, seed=0)
    return fit(
        path, reporter, hm.PCD(chains=8), 3000, model=model, data="bars-and-stripes:side=3", **settings
    )


def greedy(path: Path, reporter: Reporter) -> hm.Run:
    """A network of three levels, the second of which starts from the first upside down."""
    model = hm.DBN(12, [5, 12, 4], seed=1)
    rows = np.random.default_rng(5).integers(0, 2, (90, 12)) | (np.arange(12) < 6)
    return hm.fit_greedy(
        model, {"train": rows[:60], "test": rows[60:]}, hm.PCD(chains=16), updates=150, batch_size=20, seed=7,
        checkpoint_seconds=0, out=path, force=True, reporter=reporter,
    )  # fmt: skip


SCENARIOS: dict[str, Scenario] = {
    "extended": Scenario(persistent, 550, more=380),
    "ragged": Scenario(ragged, 600),
    "weighted": Scenario(weighted, 600),
    "stochastic": Scenario(stochastic, 600),
    "spins": Scenario(spins, 450, more=250),
    "halved": Scenario(halved, 600),
    "stopped": Scenario(stopped, 600, diverges=True),
    "watched": Scenario(watched, 0),
    "greedy": Scenario(greedy, 0),
}


@dataclass(frozen=True)
class Blow:
    """What is done to an attempt: a fault armed in it, or signals sent from outside.

    Each signal comes so many seconds after the attempt began, or after the one before, or, with ``reports``, after
    the attempt's so many-th report.
    """

    fault: str = ""
    signals: tuple[tuple[float, int], ...] = ()
    reports: int = 0

    def landed(self, status: int) -> bool:
        """Whether an attempt with this exit status was ended by it."""
        return status == -signal.SIGKILL or (status == INTERRUPTED and bool(self.signals))


UNHARMED = Blow()


class RunLostError(AssertionError):
    """A run that could not be brought to its end; ``landed`` are the blows it had borne."""

    def __init__(self, message: str, landed: list[Blow]):
        super().__init__(message)
        self.landed = landed


def go_on(scenario: Scenario, path: Path, reporter: Reporter) -> hm.Run:
    """One attempt: begin the run, or go on with it, and bring it to its end."""
    if not (path / "config.toml").exists():
        run = scenario.begin(path, reporter)
    else:
        hm.load_run(path)  # a run that has begun can be read at any time
        run = hm.resume(path, reporter=reporter)
    state = run.state
    if state is not None and run.reliable and int(state.horizon) < scenario.updates + scenario.more:
        run = hm.resume(path, updates=scenario.more, reporter=reporter)
    return run


def attempt(name: str, path: Path, fault: str, told: Connection) -> None:
    """The body of a process: `go_on` with a fault armed; its exit status says how it ended."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ[VARIABLE] = fault
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    status = INTERRUPTED
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", hm.HarmoniumWarning)
            told.send("begun")
            run = go_on(SCENARIOS[name], path, lambda record, timing: told.send(record["index"]))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        status = DONE
        for surprise in surprises(SCENARIOS[name], path, run, [str(warning.message) for warning in caught]):
            print(f"{name}: {surprise}", flush=True)
            status = FAILED
    except Exception:
        traceback.print_exc()
        status = FAILED
    finally:
        os._exit(status)


def surprises(scenario: Scenario, path: Path, run: hm.Run, warned: list[str]) -> list[str]:
    """What is not as it must be at the end of an attempt: warnings, the verdict, what the folder says of the run."""
    found = [
        f"warning: {text}" for text in warned if text != f"training {run.reason}" or not scenario.diverges
    ]
    again = hm.load_run(path)
    if run.reliable == scenario.diverges:
        found.append(f"the guard: {run.reason!r}")
    if not again.finished or (again.reliable, again.reason) != (run.reliable, run.reason):
        found.append(f"{run!r} reads {again!r}")
    if again.history != run.history:
        found.append("its history reads differently")
    if not all(jax.tree.leaves(jax.tree.map(np.array_equal, again.model, run.model))):
        found.append("its model reads differently")
    return found


@cache
def processes() -> ForkServerContext:
    """Where attempts come from: a server that has imported what they need, and started nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sklearn.datasets", "harmonium.train.fit"])
    return context


def run_attempt(name: str, path: Path, blow: Blow = UNHARMED) -> int:
    """One attempt to its end; returns its exit status, negative for a signal as in `subprocess`."""
    receiver, sender = processes().Pipe(duplex=False)
    process = processes().Process(target=attempt, args=(name, path, blow.fault, sender))
    process.start()
    sender.close()
    try:
        with suppress(EOFError):  # it may end before the reports that the blow waits for
            for _ in range(1 + blow.reports):
                receiver.recv()
            for seconds, number in blow.signals:
                process.join(seconds)
                if process.pid is not None and process.is_alive():
                    with suppress(ProcessLookupError):  # it may have ended in this very moment
                        os.kill(process.pid, number)
        process.join(120)
        if process.exitcode is None:
            raise RunLostError(f"an attempt at {name!r} did not end within two minutes: {blow}", [])
        return process.exitcode
    finally:
        if process.is_alive():
            process.kill()
        process.join()
        receiver.close()


def run_under(name: str, path: Path, blows: Iterable[Blow]) -> list[Blow]:
    """Attempt after attempt, each with its blow, until the run comes to its end; the blows that landed.

    When the blows are used up the run is left in peace. Raises RunLostError when an attempt fails.
    """
    landed: list[Blow] = []
    for blow in (*blows, UNHARMED):
        status = run_attempt(name, path, blow)
        if blow.landed(status):
            landed.append(blow)
        elif status == DONE:
            return landed
        else:
            raise RunLostError(
                f"an attempt at {name!r} ended with status {status}: {blow}, after {landed}", landed
            )
    raise AssertionError("the last attempt is left in peace")


def remains(path: Path) -> dict[str, bytes]:
    """Everything of a run that must not depend on interruptions, by file: all but timings, and the newest checkpoint.

    The checkpoint holds parameters, chains, offsets, the optimiser's state, and the keys.
    """
    checkpoints = Checkpoints(path / "checkpoints")
    found = {
        f"checkpoints/{index}": checkpoints.path(index).read_bytes() for index in checkpoints.indices()[-1:]
    }
    for file in sorted(path.iterdir()):
        if file.is_file() and file.name not in ("timing.jsonl", LOCK):
            found[file.name] = file.read_bytes()
    kept = path / "checkpoints"
    parts = [name for name in os.listdir(kept) if is_part(name)] if kept.is_dir() else []
    for stage in sorted([*path.glob("level-*"), *path.glob("joint")]):
        found |= {f"{stage.name}/{file}": content for file, content in remains(stage).items()}
    return {**found, **dict.fromkeys(parts, b"")}


def unbroken(name: str, path: Path) -> dict[str, bytes]:
    """What the run leaves when nothing happens to it; going on with it once it is finished changes not one byte."""
    run_under(name, path, [])
    found = remains(path)
    run_under(name, path, [])
    if remains(path) != found:
        raise AssertionError(f"going on with the finished run of {name!r} changed it")
    return found
