"""Proofs of paths beyond those that every model inherits: their ends, a point per row, weights from point to point."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.boltzmann import BoltzmannMachine
from harmonium.energy.independent import Independent
from harmonium.energy.layered import AbstractLayered
from harmonium.energy.machine_path import MachinePath, path_between
from harmonium.energy.path import Path
from harmonium.errors import SettingError
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise
from tests.contracts.model_cases import MODELS, model_of, table_of, wave_base
from tests.contracts.tables import FALSE_ALARM, POWER, Table, agreement, normalised, power_against

CHAINS = 30_000
LAYERED = [name for name in MODELS if isinstance(model_of(name), AbstractLayered)]

machines = pytest.mark.parametrize("name", LAYERED)


def path_to(name: str) -> Path:
    return Path(wave_base(model_of(name)), model_of(name))


def side_of(table: Table, model: AbstractBipartite, side: int) -> tuple[np.ndarray, ...]:
    return tuple(table.layers[layer] for layer in model.sides[side])


@machines
def test_a_path_ends_at_its_ends(name: str) -> None:
    path, table = path_to(name), table_of(name)
    layers: Any = table.layers
    with jax.enable_x64(True):
        for beta, end in ((0.0, path.base), (1.0, path.model)):
            here = path.at(beta)
            np.testing.assert_array_equal(here.energy(layers), end.energy(layers))
            for layer in range(len(layers)):
                np.testing.assert_array_equal(here.field(layer, layers), end.field(layer, layers))
            for side in (0, 1):
                held = side_of(table, path, side)
                energies = [model.marginal_energy(side, held) for model in (here, end)]
                np.testing.assert_allclose(energies[0], energies[1], rtol=1e-15)


@machines
def test_every_row_may_stand_at_a_point_of_its_own(name: str) -> None:
    path, table = path_to(name), table_of(name)
    betas = np.linspace(0, 1, table.count)
    with jax.enable_x64(True):
        many = path.at(betas)
        marginal = many.marginal_energy(1, side_of(table, path, 1))
        for row in (0, table.count // 2, table.count - 1):
            layers = tuple(layer[row] for layer in table.layers)
            one = path.at(betas[row])
            assert float(many.energy(table.layers)[row]) == pytest.approx(
                float(one.energy(layers)), rel=1e-14
            )
            alone = one.marginal_energy(1, tuple(layers[layer] for layer in path.sides[1]))
            assert float(marginal[row]) == pytest.approx(float(alone), rel=1e-14)


@machines
def test_a_sweep_keeps_the_law_of_each_rows_point(name: str) -> None:
    """Chains at two points side by side, each at its own exact law; moved to the other's point they would drift."""
    path, table = path_to(name), table_of(name)
    check_each_rows_point(path, table)


def check_each_rows_point(path: Any, table: Table) -> None:
    with jax.enable_x64(True):
        laws, kernels = [], []
        for beta in (0.3, 0.9):
            here = Table.of(path.at(beta))
            laws.append(normalised(-here.energy))
            kernels.append(here.sweep_kernel())
    starts = [table.draw(CHAINS, law, seed) for seed, law in enumerate(laws)]
    particles = tuple(np.concatenate(pair) for pair in zip(*starts, strict=True))
    here = as_single(path.at(np.repeat(np.array([0.3, 0.9]), CHAINS)))
    after = swept(here, particles)
    for index, law in enumerate(laws):
        np.testing.assert_allclose(law @ kernels[index], law, atol=1e-14)
        assert power_against(law @ kernels[1 - index], law, CHAINS) >= POWER
        part = tuple(layer[index * CHAINS : (index + 1) * CHAINS] for layer in after)
        assert agreement(table.counts(part), law) > FALSE_ALARM


@jax.jit
def swept(path: Any, particles: Any) -> Any:
    return path.sweep(Noise.from_key(jax.random.key(5)), particles)


@machines
def test_weights_are_differences_of_marginal_energies(name: str) -> None:
    path, table = path_to(name), table_of(name)
    betas: Any = np.linspace(0, 0.8, table.count)
    with jax.enable_x64(True):
        for side in (0, 1):
            layers = side_of(table, path, side)
            found = path.at(betas).log_weight(side, layers, betas + 0.2)
            expected = path.at(betas).marginal_energy(side, layers) - path.at(betas + 0.2).marginal_energy(
                side, layers
            )
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_small_steps_lose_nothing_in_single_precision() -> None:
    """Ten thousand steps through fields of fifty: the sum of differences against the difference of sums in float64."""
    generator = np.random.default_rng(0)
    model = hm.RBM.from_arrays(generator.standard_normal((200, 40)), np.zeros(200), np.zeros(40))
    hidden = (generator.random((8, 40)) < 0.5).astype(np.float64)
    path = Path(wave_base(model), model)
    betas = np.linspace(0, 1, 10_001, dtype=np.float32)
    with jax.enable_x64(True):
        ends = [np.asarray(path.at(beta).marginal_energy(1, (hidden,))) for beta in (0.0, 1.0)]
    single = as_single(path)
    shares = jax.jit(
        lambda: jax.lax.map(
            lambda pair: single.at(pair[0]).log_weight(1, (jnp.asarray(hidden, jnp.float32),), pair[1]),
            (betas[:-1], betas[1:]),
        )
    )()
    assert np.abs(ends[0] - ends[1]).min() > 100
    np.testing.assert_allclose(np.asarray(shares, np.float64).sum(axis=0), ends[0] - ends[1], atol=5e-5)


def test_independent_layers_have_a_known_partition_function() -> None:
    for name in LAYERED:
        base = wave_base(model_of(name))
        assert base.log_partition() == pytest.approx(Table.of(base).log_partition(), rel=1e-14)
    with pytest.raises(SettingError, match="at least one layer, got none"):
        Independent([])


def test_ends_of_other_layers_are_refused() -> None:
    model = model_of("rbm")
    for base in (
        wave_base(model_of("rbm of spins")),
        hm.RBM(4, 2),
        model_of("four layers"),
    ):
        with pytest.raises(SettingError, match="a path runs between two machines of the same layers"):
            Path(base, model)


MACHINES = [name for name in MODELS if isinstance(model_of(name), BoltzmannMachine)]
general = pytest.mark.parametrize("name", MACHINES)


def machine_path_to(name: str) -> MachinePath:
    return MachinePath(wave_base(model_of(name)), model_of(name))


@general
def test_a_path_to_a_machine_ends_at_its_ends(name: str) -> None:
    path, table = machine_path_to(name), table_of(name)
    layers: Any = table.layers
    with jax.enable_x64(True):
        for beta, end in ((0.0, path.base), (1.0, path.model)):
            here = path.at(beta)
            np.testing.assert_array_equal(here.energy(layers), end.energy(layers))
            for layer in range(len(layers)):
                found, expected = np.broadcast_arrays(here.field(layer, layers), end.field(layer, layers))
                np.testing.assert_array_equal(found, expected)
        many = path.at(np.linspace(0, 0.8, table.count))
        found = many.log_weight(layers, many.beta + 0.2)
        expected = many.energy(layers) - path.at(many.beta + 0.2).energy(layers)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["machine", "machine of spins on a lattice"])
def test_a_sweep_of_a_machine_keeps_the_law_of_each_rows_point(name: str) -> None:
    check_each_rows_point(machine_path_to(name), table_of(name))


def test_a_path_leads_to_machines_only() -> None:
    machine, base = model_of("machine"), wave_base(model_of("machine"))
    assert isinstance(path_between(base, machine), MachinePath)
    assert isinstance(path_between(wave_base(model_of("rbm")), model_of("rbm")), Path)
    with pytest.raises(SettingError, match="a path runs between two machines of the same layers"):
        path_between(wave_base(model_of("rbm")), machine)
    with pytest.raises(SettingError, match="a path leads to a machine such as"):
        path_between(base, model_of("path to a machine"))
