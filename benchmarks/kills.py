"""Never lose a run: kill small runs again and again, go on with them, and compare with the unbroken ones bit for bit.

    python benchmarks/kills.py [--kills 200] [--interrupts 40] [--seed 0] [--scenarios extended ...] [--work DIR]

Two thirds of the kills come at the dangerous points of a write (``harmonium.train.faults``), the others from outside
at random moments, before and during training. Interrupts are Ctrl-C, once or twice in a row, at random moments. After
each the run is gone on with in a fresh process. At its end parameters, chains, offsets, the optimiser's state, keys,
metrics, settings and data must have the bytes of the unbroken run. Exit status 0 when all have, 1 otherwise.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harmonium.train.faults import FAULT_POINTS
from tests.train.killing import SCENARIOS, Blow, RunLostError, remains, run_under, unbroken

BLOWS_PER_RUN = 8
MOST_LOST = 5

_ONCE = ("config", "data", "environment")  # writers that a run passes once, when it begins


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--interrupts", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--work", type=Path, help="where the run folders are kept (default: nowhere)")
    arguments = parser.parse_args()
    wanted = Counter(kill=arguments.kills, interrupt=arguments.interrupts)
    with tempfile.TemporaryDirectory(prefix="harmonium-kills-") as scratch:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", f"{scratch}/compiled")
        work = arguments.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        return campaign(wanted, random.Random(arguments.seed), arguments.scenarios, work)


def campaign(wanted: Counter[str], generator: random.Random, scenarios: list[str], work: Path) -> int:
    """Run after run until as many blows have landed as are wanted; prints the tally and returns the exit status."""
    started = time.monotonic()
    references = {name: unbroken(name, work / f"{name}-unbroken") for name in scenarios}
    print(f"{len(references)} unbroken runs, {time.monotonic() - started:.0f} s", flush=True)
    landed: Counter[str] = Counter()
    identical: Counter[str] = Counter()
    where: Counter[str] = Counter()
    runs = lost = 0
    while (left := wanted - landed) and lost < MOST_LOST:
        name = scenarios[runs % len(scenarios)]
        path = work / f"{name}-{runs:04d}"
        runs += 1
        try:
            hits = run_under(name, path, blows(generator, path, left))
            verdict = difference(references[name], remains(path))
        except RunLostError as error:
            hits, verdict = error.landed, str(error)
        counts = Counter(kind(blow) for blow in hits)
        landed += counts
        lost += bool(verdict)
        if not verdict:
            identical += counts
        where.update(blow.fault.partition(":")[0] or f"{kind(blow)} at a random moment" for blow in hits)
        print(f"{path.name}: {len(hits)} blows, {verdict or 'identical'}", flush=True)
    for place, count in sorted(where.items()):
        print(f"{count:5d}  {place}")
    print(f"{runs} runs, {time.monotonic() - started:.0f} s")
    for name, count in wanted.items():
        print(f"{identical[name]} of {count} {name}s bit-identical")
    return 0 if identical == wanted else 1


def blows(generator: random.Random, path: Path, left: Counter[str]) -> Iterator[Blow]:
    """What one run has to bear; a further blow is asked for only when the one before has landed."""
    kinds = list(left.elements())
    for chosen in generator.sample(kinds, min(BLOWS_PER_RUN, len(kinds))):
        if chosen == "interrupt":
            yield interrupt(generator)
        elif generator.random() < 1 / 3:
            yield kill_from_outside(generator)
        else:
            yield kill_in_a_write(generator, begun=(path / "config.toml").exists())


def kind(blow: Blow) -> str:
    """What a blow counts as."""
    return "interrupt" if any(number == signal.SIGINT for _, number in blow.signals) else "kill"


def interrupt(generator: random.Random) -> Blow:
    """Ctrl-C soon after a report or before the first one, and perhaps a second one a few milliseconds later."""
    reports = generator.choice((0, 1, 1, 2, 3))
    first = generator.uniform(0, 0.03 if reports else 1.0)
    signals = ((first, signal.SIGINT), (generator.expovariate(100), signal.SIGINT))
    return Blow(signals=signals[: generator.choice((1, 2))], reports=reports)


def kill_from_outside(generator: random.Random) -> Blow:
    """SIGKILL soon after a report, or before the first one."""
    reports = generator.choice((0, 1, 1, 2, 3))
    return Blow(signals=((generator.uniform(0, 0.05 if reports else 1.0), signal.SIGKILL),), reports=reports)


def kill_in_a_write(generator: random.Random, begun: bool) -> Blow:
    """At any point that an attempt may still pass, at a random passage."""
    points = [point for point in sorted(FAULT_POINTS) if not (begun and point.startswith(_ONCE))]
    point = generator.choice(points)
    passage = 1 if point.startswith((*_ONCE, "cut")) else generator.choice((1, 1, 2, 2, 3, 4))
    return Blow(fault=f"{point}:{passage}")


def difference(reference: dict[str, bytes], found: dict[str, bytes]) -> str:
    """The names of the files that differ."""
    files = sorted(file for file in {*reference, *found} if reference.get(file) != found.get(file))
    return f"DIFFERS in {', '.join(files)}" if files else ""


if __name__ == "__main__":
    sys.exit(main())
