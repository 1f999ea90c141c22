"""The contract table of mode solvers."""

from __future__ import annotations

from harmonium.modes.annealing import Annealing
from harmonium.modes.base import AbstractModeSolver
from harmonium.modes.descent import Descent
from harmonium.modes.exact import Exact
from harmonium.modes.memcomputing import Memcomputing

SOLVERS: dict[str, AbstractModeSolver] = {
    "descent": Descent(64),
    "annealing": Annealing(4, 40),
    "memcomputing": Memcomputing(4, 40),
    "exact": Exact(),
    "exact, by branch and bound": Exact(bit_budget=1),
}
"""Solvers by name, with as many searches as find the mode of machines of a few units."""

MACHINES = (
    "three layers",
    "machine, spins below",
    "machine on a sparse graph",
)
"""Machines that they search: of several kinds and layers, and of units coupled within a layer."""
