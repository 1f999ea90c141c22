"""How speed is measured here: one pinned core, one thread, contestants in turn in one process, ratios within rounds.

Absolute times drift with the machine and its neighbours; the ratio of two contestants in the same round hardly does.
Every script prints the median of the per-round ratios, with each contestant's own minimum beside it.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")
_READY = "HARMONIUM_BENCHMARK_READY"


def one_core(core: int | None = None) -> None:
    """Restart this script pinned to one core with one thread everywhere; call it before importing numpy or jax.

    Overrides of OpenBLAS's choice of kernel are removed: they are there for correctness elsewhere and slow it down.
    """
    if os.environ.get(_READY):
        return
    environment = dict(os.environ)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        environment.pop(name, None)
    environment |= {name: "1" for name in _THREADS}
    environment["XLA_FLAGS"] = (
        f"{environment.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    )
    environment[_READY] = "1"
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[-1] if core is None else core})
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def kernels() -> str:
    """The matrix kernels that numpy's libraries have chosen here, which decide how fast numpy and scikit-learn are."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return "kernels of numpy unknown: pip install threadpoolctl"
    found = {f"{pool['internal_api']} {pool.get('architecture', '')}".strip() for pool in threadpool_info()}
    return f"kernels of numpy: {', '.join(sorted(found))}"


@dataclass
class Contestant:
    """One way of doing the work: ``run`` does ``units`` of it, all of it finished when it returns."""

    name: str
    run: Callable[[], object]
    units: float
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def once(self) -> None:
        """Run once and note CPU and wall seconds per unit."""
        cpu, wall = time.process_time(), time.perf_counter()
        self.run()
        self.cpu.append((time.process_time() - cpu) / self.units)
        self.wall.append((time.perf_counter() - wall) / self.units)


def race(contestants: list[Contestant], rounds: int = 7) -> None:
    """Warm every contestant up once, then run them in turn for ``rounds`` rounds."""
    for contestant in contestants:
        contestant.run()
    for _ in range(rounds):
        for contestant in contestants:
            contestant.once()


def ratio(slower: Contestant, faster: Contestant) -> float:
    """Median over rounds of how many times the CPU time of ``faster`` the other one takes."""
    return statistics.median(a / b for a, b in zip(slower.cpu, faster.cpu, strict=True))


def print_table(title: str, contestants: list[Contestant], reference: Contestant) -> None:
    """Per contestant: microseconds of CPU per unit (minimum, median), wall, and the ratio to the reference."""
    print(f"\n{title} (load {os.getloadavg()[0]:.1f}, rounds {len(reference.cpu)})")
    print(
        f"{'':34s}{'cpu min':>11s}{'cpu median':>12s}{'wall median':>13s}{'ratio to ' + reference.name:>26s}"
    )
    for contestant in contestants:
        low, middle = min(contestant.cpu) * 1e6, statistics.median(contestant.cpu) * 1e6
        wall = statistics.median(contestant.wall) * 1e6
        print(
            f"{contestant.name:34s}{low:11.1f}{middle:12.1f}{wall:13.1f}{ratio(contestant, reference):26.3f}"
        )
