"""The mode solvers by name: what ``--solver`` and a run's ``config.toml`` may say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from harmonium.errors import SettingError
from harmonium.modes.annealing import Annealing
from harmonium.modes.base import AbstractModeSolver
from harmonium.modes.descent import Descent
from harmonium.modes.dimod_sampler import DimodSolver, is_dimod_sampler
from harmonium.modes.exact import Exact
from harmonium.modes.memcomputing import Memcomputing

SOLVERS: Mapping[str, Callable[..., AbstractModeSolver]] = MappingProxyType(
    {"descent": Descent, "annealing": Annealing, "memcomputing": Memcomputing, "exact": Exact}
)

SETTINGS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "descent": ("starts", "sweeps"),
        "annealing": ("chains", "sweeps", "hottest", "coldest"),
        "memcomputing": ("starts", "steps", "cap", "alpha", "beta", "gamma", "delta", "zeta"),
        "exact": ("bit_budget", "nodes"),
    }
)
"""What each of them can be told."""


def build_solver(solver: Any, settings: Mapping[str, Any] | None = None) -> AbstractModeSolver:
    """The solver called so; None in a setting means its default. One that is given as an object is passed on.

    A dimod sampler becomes a `harmonium.modes.dimod_sampler.DimodSolver`, with the settings as its options.

    Raises `SettingError` for a name that is not known, for a setting that the solver does not have, and for settings
    beside an object.

    >>> build_solver("descent", {"starts": 256}).starts
    256
    """
    given = {key: value for key, value in (settings or {}).items() if value is not None}
    if isinstance(solver, AbstractModeSolver):
        for key, value in given.items():
            raise SettingError(f"{key}={value} belongs to a solver given by its name; drop it")
        return solver
    if is_dimod_sampler(solver):
        return DimodSolver(solver, **given)
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise SettingError(f"no mode solver is called {solver!r}; choose one of {', '.join(SOLVERS)}")
    for key, value in given.items():
        if key not in SETTINGS[solver]:
            raise SettingError(
                f"{key}={value} is no setting of {solver}; it has {', '.join(SETTINGS[solver])}"
            )
    return SOLVERS[solver](**given)


def describe_solver(solver: AbstractModeSolver) -> tuple[str, dict[str, Any]] | None:
    """The name and settings that `build_solver` makes this solver of; None for one that has no name."""
    for name, kind in SOLVERS.items():
        if type(solver) is kind:
            settings = {key: getattr(solver, key) for key in SETTINGS[name]}
            return (name, settings) if solver == build_solver(name, settings) else None
    return None
