"""How much faster many small machines are trained as one ensemble than one after the other.

    python benchmarks/ensemble_speed.py [--sizes bars:16x12 ...] [--members 50] [--updates 2000] [--rounds 3]

Three figures per size, each a ratio within one run:

- ``commands``: so many commands ``harmonium train``, each with start-up and compilation, against one with
  ``--members``. The sequence is timed on a few of its commands, which do the same with other seeds, and scaled up.
- ``calls``: so many calls of ``hm.fit`` in one process, of which the first compiles, against one with ``members``,
  which compiles too.
- ``updates``: the same calls once everything is compiled.

``--members 1`` against no members is printed as well: the same program, so that it should cost nothing.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from protocol import Contestant, one_core, print_table, race, ratio

one_core()
# Every process here compiles what it needs: a program kept from an earlier one would hide the compilation.
os.environ["HARMONIUM_CACHE"] = "off"

import harmonium as hm

DATA = {
    "bars": "bars-and-stripes:side=4",
    "shifting": "shifting-bars:length=12,bar=6",
    "digits": "digits",
}


def size_of(text: str) -> tuple[str, int, int]:
    """``bars:16x12`` as the name of the data and the two sizes."""
    name, _, shape = text.partition(":")
    visible, hidden = (int(part) for part in shape.split("x"))
    return DATA[name], visible, hidden


def command(data: str, hidden: int, updates: int, *more: str) -> float:
    """CPU seconds of one command, from nothing to its result."""
    program = "from harmonium.cli.main import run; import sys; sys.exit(run())"
    with tempfile.TemporaryDirectory() as folder:
        line = ["train", "--data", data, "--hidden", str(hidden), "--updates", str(updates)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", program, *line, "--out", str(Path(folder, "run")), *more],
            check=True,
            capture_output=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_call(visible: int, hidden: int, data: str, updates: int, members: int | None) -> float:
    """CPU seconds of the first call of ``hm.fit`` in a fresh process, imports left out."""
    program = (
        "import time, jax, harmonium as hm\n"
        f"data = hm.load_data({data!r}); jax.numpy.zeros(1).block_until_ready(); start = time.process_time()\n"
        f"hm.fit(hm.RBM({visible}, {hidden}, seed=0), data, updates={updates}, members={members})\n"
        "print(time.process_time() - start)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def contestants(name: str, visible: int, hidden: int, updates: int, seeds: list[int]) -> list[Contestant]:
    """A few of the runs one after the other, all of them as an ensemble, and the few with ``members=1``."""
    data = hm.load_data(name)

    def alone(seed: int, members: int | None = None) -> hm.Run:
        return hm.fit(hm.RBM(visible, hidden, seed=seed), data, updates=updates, seed=seed, members=members)

    few = seeds[:10]
    return [
        Contestant("one after the other", lambda: [alone(seed) for seed in few], len(few)),
        Contestant("as an ensemble", lambda: alone(seeds[0], len(seeds)), len(seeds)),
        Contestant("members=1", lambda: [alone(seed, 1) for seed in few], len(few)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", default=["shifting:12x12", "bars:16x12", "digits:64x16"])
    parser.add_argument("--members", type=int, default=50)
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    members, updates = options.members, options.updates
    for text in options.sizes:
        name, visible, hidden = size_of(text)
        seeds = [hm.member_seed(0, member) for member in range(members)]
        racers = contestants(name, visible, hidden, updates, seeds)
        race(racers, options.rounds)
        sequence, ensemble, one = racers
        print_table(f"{members} machines of {visible} x {hidden}, {updates} updates, each", racers, ensemble)
        print(f"updates: one after the other / ensemble {ratio(sequence, ensemble):.2f}")
        print(f"members=1 / no members {ratio(one, sequence):.3f}")
        each = min(sequence.cpu)
        whole, single = (first_call(visible, hidden, name, updates, count) for count in (members, None))
        print(f"calls, compilation included: {(single + (members - 1) * each) / whole:.2f}")
        start = time.perf_counter()
        commands = [command(name, hidden, updates, "--seed", str(seed)) for seed in seeds[:3]]
        together = command(name, hidden, updates, "--members", str(members))
        print(
            f"commands, start-up and compilation included: {members * sum(commands) / len(commands) / together:.2f}"
            f" (one {sum(commands) / len(commands):.1f} s, ensemble {together:.1f} s of CPU, "
            f"{time.perf_counter() - start:.0f} s to measure)",
            flush=True,
        )


if __name__ == "__main__":
    main()
