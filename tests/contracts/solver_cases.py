"""The contract table of mode solvers."""

from __future__ import annotations

from harmonium.modes.annealing import Annealing
from harmonium.modes.base import AbstractModeSolver
from harmonium.modes.descent import Descent
from harmonium.modes.dimod_sampler import DimodSolver
from harmonium.modes.exact import Exact
from harmonium.modes.memcomputing import Memcomputing
from tests.contracts.annealer_cases import HeatBath

SOLVERS: dict[str, AbstractModeSolver] = {
    "descent": Descent(64),
    "annealing": Annealing(4, 40),
    "memcomputing": Memcomputing(4, 40),
    "dimod": DimodSolver(HeatBath(20.0), num_reads=40, num_sweeps=8),
    "exact": Exact(),
    "exact, by branch and bound": Exact(bit_budget=1),
}
"""Solvers by name, with as many searches as find the mode of machines of a few units.

"dimod" stands for any sampler with that interface: an object, and no name to type.
"""

MACHINES = (
    "three layers",
    "machine, spins below",
    "machine on a sparse graph",
)
"""Machines that they search: of several kinds and layers, and of units coupled within a layer."""
