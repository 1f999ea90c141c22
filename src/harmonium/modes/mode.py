"""The state of lowest energy in one call, with what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np

from harmonium.energy.base import AbstractEnergyModel, check_finite
from harmonium.modes.base import AGREEMENT, AbstractModeSolver, check_searchable, exact_energies
from harmonium.modes.names import build_solver, describe_solver
from harmonium.numerics.random import key_words, seed_key
from harmonium.numerics.whole import seed_number


@dataclass(frozen=True)
class Mode:
    """The best state that a search found.

    - ``state``: one numpy array per layer, the visible one first; uint8 for 0/1 units, int8 for spins.
    - ``energy``: its energy in nats, in double precision; its log-probability is minus that and ``log Z``.
    - ``certificate``: "exact" where it is proved that no state has a lower energy (to the rounding of double
      precision), "best found" otherwise.
    - ``lower_bound``: what no state's energy lies below, by proof; None where nothing was proved.
    - ``solver``: its name and settings, or the name of its class.
    - ``runs``, ``agreed``: how many searches were made, and how many of them ended at this energy. Agreement is a hint
      and no proof.
    - ``unit_updates``: units that they updated in all, the cost at which solvers are compared.
    """

    state: tuple[np.ndarray, ...]
    energy: float
    certificate: str
    lower_bound: float | None
    solver: str
    runs: int
    agreed: int
    unit_updates: float

    @property
    def gap(self) -> float | None:
        """How far below this state's energy another might lie, in nats; None where nothing was proved."""
        return None if self.lower_bound is None else max(0.0, self.energy - self.lower_bound)


def find(
    model: AbstractEnergyModel,
    solver: Any = "descent",
    seed: SupportsIndex = 0,
    **settings: Any,
) -> Mode:
    r"""The mode of a model, its state of lowest energy :math:`\arg\min_x E(x)`, as well as the solver finds it.

    ``solver`` is "descent", "annealing", "memcomputing" or "exact", with ``settings`` such as ``starts=256``, a solver
    object such as ``Descent(256)``, or any dimod sampler, whose own options the ``settings`` are. Only "exact" proves
    anything, and says so where it did; see `Mode` for what is returned.

    **Raises** `SettingError` for what is no single undirected machine (a stack is read from its top and has no energy
    of its own), for units that a solver cannot take, and for settings that it does not have.

    >>> from harmonium.energy.rbm import RBM
    >>> mode = find(RBM.from_arrays([[4.0]], [-1.0], [-2.0]))
    >>> [layer.tolist() for layer in mode.state], mode.energy, mode.certificate
    ([[1], [1]], -1.0, 'best found')
    """
    check_searchable(model)
    chosen = build_solver(solver, settings)
    seed = seed_number(seed)
    check_finite(model)
    found = chosen.explore(key_words(seed_key(seed)), model)
    # What is claimed is claimed of the state that is returned: its energy is taken once more, from the model itself.
    energy = float(exact_energies(model, found.configuration))
    proved = found.lower_bound is not None and energy - found.lower_bound <= AGREEMENT * max(1.0, abs(energy))
    state = tuple(
        np.asarray(layer).astype(np.uint8 if min(units.support) >= 0 else np.int8)
        for units, layer in zip(model.units, found.configuration, strict=True)
    )
    return Mode(
        state,
        energy,
        "exact" if proved else "best found",
        found.lower_bound,
        _described(chosen),
        found.runs,
        found.agreed,
        found.unit_updates,
    )


def _described(solver: AbstractModeSolver) -> str:
    named = describe_solver(solver)
    if named is None:
        return type(solver).__name__
    name, settings = named
    told = ", ".join(f"{key}={value}" for key, value in settings.items() if value is not None)
    return f"{name} ({told})"
