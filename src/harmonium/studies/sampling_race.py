"""The race of the samplers: jumps between clusters at equal unit updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from harmonium.data.base import DataSet
from harmonium.data.load import load_data
from harmonium.data.modes import planted, planted_machine
from harmonium.energy.rbm import RBM
from harmonium.evaluate.exact import exact_log_partition
from harmonium.evaluate.valleys import Valleys, hidden_valleys
from harmonium.report.figures import Bar, Figure, Panel
from harmonium.rules.likelihood import ExactGradient
from harmonium.studies.base import AbstractStudy, Progress, Scale, Statement, StudyResult, Table
from harmonium.studies.racing import Lengths, Racer, Track, race
from harmonium.studies.real_data import FOLDER, benchmark_data
from harmonium.train.fit import fit

RACERS = (
    Racer("block Gibbs", "gibbs"),
    Racer("PT, uniform betas", "pt", {"base": "uniform"}),
    Racer("PT, learned betas", "pt", {"base": "uniform", "schedule": "learned"}),
    Racer("PT, adaptive betas", "pt", {"base": "uniform", "schedule": "adaptive"}),
    Racer("PT, learned betas, data base", "pt", {"schedule": "learned"}),
    Racer("CAST 1:1, 20 levels", "cast", {"base": "uniform", "rungs": 20, "ratio": 1}),
    Racer("CAST 1:10, 20 levels", "cast", {"base": "uniform", "rungs": 20}),
    Racer("CAST 1:10, 20 levels, data base", "cast", {"rungs": 20}),
    Racer("tempered transitions", "transitions", {"base": "uniform"}),
    Racer(
        "tempered transitions, to beta 0.45",
        "transitions",
        {"base": "uniform", "schedule": [0.45 + 0.55 * rung / 59 for rung in range(60)]},
    ),
)
"""The first is what the others are measured by; the base is uniform where nothing is said of it."""

LEAST_GAIN = 100.0
"""How many times as often as block Gibbs sampling a tempered sampler is to jump on the planted machine."""

LEAST_JUMPS = 30
"""Jumps of a tempered sampler below which nothing is claimed of it."""

BARRIERS = (5.0, 3.0, 2.0, 1.0)
"""Nats between the valleys of a machine: the first of these at which there are two."""

COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "machine": "machine",
        "sampler": "sampler",
        "step_cost": "unit updates of a step",
        "jumps": "jumps",
        "jump_rate": "jumps per million unit updates",
        "jump_rate_low": "from",
        "jump_rate_high": "to",
        "gain": "times block Gibbs, at least",
        "effective_rate": "effective draws per million",
        "split_rhat": "split R-hat",
        "all_seen": "unit updates until all valleys were seen",
        "missed": "valleys never seen",
        "share_error": "error of the valleys' shares",
        "log_partition_error": "error of log Z, nats",
        "log_partition_stderr": "its standard error",
    }
)

PUBLISHED = Table(
    name="published",
    caption="Jumps between clusters, times those of block Gibbs sampling, as printed, for a ladder of models along "
    "training; other machines and another ladder than ours.",
    columns={"machine": "machine", "gain": "times block Gibbs"},
    rows=(
        {"machine": "MNIST, digits 0 and 1", "gain": 80.0},
        {"machine": "human genome", "gain": 1350.0},
    ),
    source="Béreux, Decelle, Furtlehner, Rosset and Seoane, trajectory parallel tempering (2024-2026)",
)


class Plan(NamedTuple):
    """What a scale means: how long samplers run, and how the machines of real data are trained."""

    lengths: Lengths
    hidden: int
    updates: int


PLANS: Mapping[str, Plan] = MappingProxyType(
    {
        "quick": Plan(Lengths(20_000_000, 20_000_000, chains=16), 12, 2000),
        "full": Plan(Lengths(500_000_000, 500_000_000, chains=64), 14, 10_000),
    }
)


class SamplingRace(AbstractStudy):
    """All samplers at equal unit updates, on a machine with planted clusters and on three trained ones.

    Machines have few enough hidden units for everything about them to be exact: starts at equilibrium, valleys and
    their weights (`harmonium.evaluate.valleys.hidden_valleys`), log Z. Trained ones follow the exact gradient, so
    that none of the samplers made the machine that it runs on.
    """

    name = "sampling-race"
    summary = "jumps between clusters, first visits and errors of log Z of all samplers at equal unit updates"

    def run(self, scale: Scale, seed: int, progress: Progress) -> StudyResult:
        plan = PLANS[scale]
        progress("planting a machine of 8 clusters")
        tracks, absent = [planted_track(8, 64, seed)], []
        for name in ("digits", "mushrooms", "accidents"):
            data = load_data("digits") if name == "digits" else benchmark_data(name)
            if data is None:
                absent.append(name)
                progress(f"no {name}: {FOLDER} names no folder that holds {name}.npz")
                continue
            progress(
                f"training {data.train.shape[1]} x {plan.hidden} units on {name}, {plan.updates} updates"
            )
            tracks.append(trained_track(name, data, plan.hidden, plan.updates, seed))
        return run_race(tracks, RACERS, plan.lengths, seed, progress, absent)


def planted_track(clusters: int, visible: int, seed: int) -> Track:
    """A machine of planted clusters, each of which is a valley."""
    machine = planted_machine(clusters, visible, seed=seed)
    model = RBM.from_arrays(machine.weights, machine.visible_bias, machine.hidden_bias)
    rows = planted(clusters, visible, seed=seed, rows=2000).train
    return Track("planted", model, rows, *_highest_passes(model), machine.log_partition)


def trained_track(name: str, data: DataSet, hidden: int, updates: int, seed: int) -> Track:
    """A machine trained on data by the exact gradient."""
    run = fit(
        RBM(data.train.shape[1], hidden, seed=seed),
        data,
        ExactGradient(),
        updates=updates,
        learning_rate=0.3,
        seed=seed,
    )
    model = run.model
    assert isinstance(model, RBM)
    return Track(name, model, data.train, *_highest_passes(model), float(exact_log_partition(model).value))


def _highest_passes(model: RBM) -> tuple[Valleys, float]:
    """The valleys behind the highest of the barriers that leaves more than one, and that barrier."""
    for barrier in BARRIERS[:-1]:
        valleys = hidden_valleys(model, barrier)
        if len(valleys.weights) > 1:
            return valleys, barrier
    return hidden_valleys(model, BARRIERS[-1]), BARRIERS[-1]


def run_race(
    tracks: Sequence[Track],
    racers: Sequence[Racer],
    lengths: Lengths,
    seed: int,
    progress: Progress,
    absent: Sequence[str] = (),
) -> StudyResult:
    """Every racer on every track; the first racer is what the others are measured by."""
    rows: list[dict[str, Any]] = []
    for track in tracks:
        first: dict[str, Any] | None = None
        for racer in racers:
            progress(f"{track.name}: {racer.label}")
            row = race(racer, track, lengths, seed)
            first = row if first is None else first
            row["gain"] = None if row is first else row["jump_rate"] / first["jump_rate_high"]
            rows.append(row)
    table = Table(
        name="jumps",
        caption="Samplers at equal unit updates, those of every replica counted. Jumps between valleys, with exact "
        "Poisson intervals of 95 %, effective draws (of being in the heaviest valley; chains that never move have one "
        "each) and R-hat are of chains that started at equilibrium. First visits, the error of the shares of valleys "
        "(total variation) and of log Z (the exact sum over the heaviest valley over its share of draws) are of chains "
        "that all started in the heaviest valley.",
        columns=COLUMNS,
        rows=tuple({key: row[key] for key in COLUMNS} for row in rows),
        published=PUBLISHED,
    )
    machines = Table(
        name="machines",
        caption="The machines. Valleys are what remains apart when hidden codes are flooded and those whose pass is "
        f"lower than the barrier are joined: the first of {', '.join(f'{barrier:g}' for barrier in BARRIERS)} nats "
        "that leaves two. Those of less than 1 % are left out.",
        columns={
            "machine": "machine",
            "visible": "visible units",
            "hidden": "hidden units",
            "barrier": "barrier, nats",
            "valleys": "valleys",
            "heaviest": "weight of the heaviest",
            "lightest": "of the lightest",
            "log_partition": "log Z, nats",
        },
        rows=tuple(_machine_row(track) for track in tracks),
    )
    return StudyResult(
        tables=(table, machines),
        figures=(_figure(tracks, rows),),
        statements=tuple(_statements(tracks, racers, rows, absent)),
        settings={
            **lengths._asdict(),
            "barriers": list(BARRIERS),
            "samplers": {racer.label: {"name": racer.name, **racer.settings} for racer in racers},
        },
    )


def _machine_row(track: Track) -> dict[str, Any]:
    weights = track.valleys.weights
    visible, hidden = (units.size for units in track.model.units)
    return {
        "machine": track.name,
        "visible": visible,
        "hidden": hidden,
        "barrier": track.barrier,
        "valleys": len(weights),
        "heaviest": float(weights[0]),
        "lightest": float(weights[-1]),
        "log_partition": track.log_partition,
    }


def _figure(tracks: Sequence[Track], rows: Sequence[Mapping[str, Any]]) -> Figure:
    panels = []
    for track in tracks:
        bars = tuple(
            Bar(
                row["sampler"],
                row["jump_rate"] if row["jumps"] else None,
                row["jump_rate_low"],
                row["jump_rate_high"],
            )
            for row in rows
            if row["machine"] == track.name
        )
        panels.append(Panel(f"{track.name}, {len(track.valleys.weights)} valleys", bars))
    return Figure(
        name="jumps",
        caption="Jumps between valleys at equal unit updates, with intervals of 95 %; an arrow is an upper bound",
        axis="jumps per million unit updates",
        panels=tuple(panels),
    )


def _statements(
    tracks: Sequence[Track],
    racers: Sequence[Racer],
    rows: Sequence[Mapping[str, Any]],
    absent: Sequence[str],
) -> list[Statement]:
    said = []
    for track in tracks:
        mine = [row for row in rows if row["machine"] == track.name]
        first, others = mine[0], mine[1:]
        if len(track.valleys.weights) < 2:
            said.append(Statement(f"{track.name}: one valley, between which and itself nothing jumps"))
            continue
        enough = [row for row in others if row["jumps"] >= LEAST_JUMPS]
        fast = sorted((row for row in enough if row["gain"] >= LEAST_GAIN), key=lambda row: -row["gain"])
        bound = (
            f"{first['sampler']} jumps at most {first['jump_rate_high']:.3g} times per million unit updates"
        )
        if fast:
            names = ", ".join(
                f"{row['sampler']} {row['gain']:.3g} times ({row['jumps']} jumps)" for row in fast
            )
            text = f"{track.name}: {bound}; at least {LEAST_GAIN:g} times as often: {names}"
        else:
            best = max(others, key=lambda row: row["gain"])
            text = (
                f"{track.name}: {bound}; no sampler jumps {LEAST_GAIN:g} times as often with {LEAST_JUMPS} jumps seen, "
                f"the best is {best['sampler']} with {best['gain']:.3g} times ({best['jumps']} jumps)"
            )
        # Only the planted machine is known to be one that sweeps do not cross.
        said.append(Statement(text, bool(fast) if track.name == "planted" else None))
    said.extend(
        Statement(f"{name}: left out, {FOLDER} names no folder that holds {name}.npz") for name in absent
    )
    return said
