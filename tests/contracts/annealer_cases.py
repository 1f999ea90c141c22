"""Rows of samplers that work outside of the compiled program: annealers by the interface of dimod."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from harmonium.interop.dimod.annealer import Annealer
from tests.contracts.tables import Table


class HeatBath:
    """A dimod sampler that draws one spin after the other given all others, at an inverse temperature of its own."""

    parameters = ("num_reads", "seed", "initial_states", "num_sweeps")

    def __init__(self, beta: float = 1.0):
        self.beta = beta

    def sample_ising(
        self,
        h: dict[int, float],
        J: dict[tuple[int, int], float],
        *,
        num_reads: int,
        seed: int,
        **options: Any,
    ) -> Any:
        from dimod import SampleSet

        generator = np.random.default_rng(seed)
        coupling = np.zeros((len(h), len(h)))
        for (one, other), strength in J.items():
            coupling[one, other] = coupling[other, one] = strength
        started = options.get("initial_states")
        spins = (
            generator.choice([-1.0, 1.0], (num_reads, len(h)))
            if started is None
            else np.array(started[0], np.float64)
        )
        for _ in range(options.get("num_sweeps", 1)):
            for unit, bias in h.items():
                field = bias + spins @ coupling[unit]
                up = generator.random(num_reads) < scipy.special.expit(-2 * self.beta * field)
                spins[:, unit] = np.where(up, 1, -1)
        return SampleSet.from_samples((spins.astype(np.int8), list(h)), "SPIN", energy=np.zeros(len(spins)))


def _hotter(table: Table) -> np.ndarray:
    """One sweep at 0.8 of the inverse temperature, unit after unit."""
    law = table.law()
    for unit in range(sum(table.sizes)):
        law = law @ table.unit_kernel([unit], beta=0.8)
    return law


ANNEALED: dict[str, dict[str, Any]] = {
    "annealer, one unit after the other": dict(
        model="machine",
        sampler=Annealer(HeatBath(), continued=True),
        twin=Annealer(HeatBath(0.8), continued=True),
        mistaken=_hotter,
        chains=20_000,
        settled=60,
    ),
}
"""Rows of the sampler table, see ``cases.py``."""
