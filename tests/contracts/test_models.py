"""Proofs that every model inherits: energies, fields, marginals, clamps, coordinates and sweeps against the table."""

from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from harmonium.energy.bipartite import AbstractBipartite
from harmonium.energy.enumeration import log_partition_of
from harmonium.energy.machine_path import MachinePath
from harmonium.energy.path import Path
from harmonium.energy.rbm import RBM
from harmonium.errors import SettingError
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise
from harmonium.typing import Clamp, Configuration
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.categorical import Categorical
from tests.contracts.machines import wave_matrix, wave_vector
from tests.contracts.model_cases import LABELLED, MODELS, ModelCase, case_of, model_of, table_of
from tests.contracts.tables import FALSE_ALARM, POWER, Table, agreement, power_against

CHAINS = 30_000

models = pytest.mark.parametrize("name", [*MODELS, *LABELLED])
bipartite = pytest.mark.parametrize(
    "name", [name for name in (*MODELS, *LABELLED) if isinstance(model_of(name), AbstractBipartite)]
)


@jax.jit
def answers(model: Any, layers: Configuration) -> tuple:
    """Energy, every layer's field, both marginal energies and the free energy of rows, in one program."""
    fields = tuple(model.field(layer, layers) for layer in range(len(layers)))
    marginals = ()
    if isinstance(model, AbstractBipartite):
        marginals = tuple(
            model.marginal_energy(side, tuple(layers[i] for i in model.sides[side])) for side in (0, 1)
        )
    return model.energy(layers), fields, marginals, model.free_energy(layers[0])


@cache
def exact_answers(name: str) -> tuple:
    """The answers to all rows of the table, in float64."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, answers(model_of(name), table_of(name).layers))


@jax.jit
def tempered_sweep(seed: jax.Array, model: Any, particles: Configuration, beta: jax.Array) -> Configuration:
    return model.sweep(Noise.from_key(jax.random.key(seed)), particles, beta)


def swept(model: Any, particles: Any, seed: int) -> Configuration:
    return tempered_sweep(seed, as_single(model), particles, np.ones(len(particles[0]), np.float32))


@models
def test_energy_is_what_is_written(name: str) -> None:
    case, table = case_of(name), table_of(name)
    np.testing.assert_allclose(
        table.energy, case.energy(model_of(name).parameters(), table.layers), rtol=1e-13, atol=1e-14
    )


@models
def test_field_is_the_energy_difference(name: str) -> None:
    """Turning one unit from a to b changes the energy by ``-(b - a) f`` in any configuration.

    A softmax variable is turned from its first state to each other one, which changes it by ``f_first - f_other``.
    """
    model, table = model_of(name), table_of(name)
    fields = exact_answers(name)[1]
    looked = 0
    for layer, units in enumerate(model.units):
        field = np.broadcast_to(fields[layer], (table.count, units.size))
        low, high = units.support[0], units.support[-1]
        softmax = isinstance(units, Categorical)
        for unit in range(units.size):
            turned = [part.copy() for part in table.layers]
            if softmax:
                turned[layer][:] = low
            turned[layer][:, unit] = high
            up = table.energy[table.codes(turned)]
            turned[layer][:, unit] = low
            if softmax:
                turned[layer][:, 0] = high
            down = table.energy[table.codes(turned)]
            change = field[:, unit] - (field[:, 0] if softmax else 0.0)
            np.testing.assert_allclose(down - up, (high - low) * change, rtol=1e-12, atol=1e-12)
            looked += 1
    assert looked == sum(units.size for units in model.units)


@models
def test_free_energies_are_sums_over_the_joint(name: str) -> None:
    """Hidden units summed out, one by one or enumerated, and the partition function from what is left."""
    table = table_of(name)
    groups = table.groups([0])
    _, first = np.unique(groups, return_index=True)
    by_sum = np.array([np.logaddexp.reduce(-table.energy[groups == group]) for group in range(len(first))])
    found = exact_answers(name)[3]
    np.testing.assert_allclose(-found[first], by_sum, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(found, found[first][groups])
    with jax.enable_x64(True):
        log_partition = float(jax.jit(log_partition_of)(model_of(name)))
    assert log_partition == pytest.approx(table.log_partition(), rel=1e-13)


@models
def test_pairs_say_the_same_energy(name: str) -> None:
    model, table = model_of(name), table_of(name)
    with jax.enable_x64(True):
        coupling, bias = jax.tree.map(np.asarray, model.pairwise())
    assert not np.diag(coupling).any()
    np.testing.assert_array_equal(coupling, coupling.T)
    x = np.concatenate(table.layers, axis=1)
    np.testing.assert_allclose(-np.sum(x @ coupling * x, axis=1) / 2 - x @ bias, table.energy, atol=1e-13)
    for held in (False, True):
        split = model.split(held)
        labels = model.units[-1].size if name in LABELLED else 0
        units = np.arange(model.units[0].size if held else 0, x.shape[1] - labels)
        assert sorted((*split.enumerated, *split.summed)) == units.tolist()
        assert not coupling[np.ix_(split.summed, split.summed)].any()


@pytest.mark.parametrize("name", ["four layers", *(name for name in MODELS if name.startswith("machine"))])
def test_the_energy_of_a_chain_has_the_gradient_of_the_log_partition_function(name: str) -> None:
    """In expectation over the model: the negative phase, with the layers that can be summed out summed out."""
    model, table = model_of(name), table_of(name)
    with jax.enable_x64(True):
        law = jnp.asarray(table.law())
        rows = tuple(map(jnp.asarray, table.layers))
        slopes = jax.jit(jax.grad(lambda model: law @ model.chain_energy(rows)))(
            jax.tree.map(jnp.asarray, model)
        )
        exact = jax.jit(jax.grad(log_partition_of))(jax.tree.map(jnp.asarray, model))
    for found, expected in zip(jax.tree.leaves(slopes), jax.tree.leaves(exact), strict=True):
        np.testing.assert_allclose(-np.asarray(found), np.asarray(expected), atol=1e-13)


@bipartite
def test_marginal_energies_are_sums_over_the_joint(name: str) -> None:
    """Both sides, and therefore the same partition function from either."""
    model, table = model_of(name), table_of(name)
    assert isinstance(model, AbstractBipartite)
    totals = []
    for side in (0, 1):
        groups = table.groups(model.sides[side])
        _, first = np.unique(groups, return_index=True)
        by_sum = np.array(
            [np.logaddexp.reduce(-table.energy[groups == group]) for group in range(len(first))]
        )
        found = exact_answers(name)[2][side][first]
        np.testing.assert_allclose(-found, by_sum, rtol=1e-13, atol=1e-13)
        totals.append(np.logaddexp.reduce(-found))
    np.testing.assert_allclose(totals, table.log_partition(), rtol=1e-13)


@models
def test_clamped_units_never_move(name: str) -> None:
    """Held by True and by a mask, over several sweeps; what is free does move."""
    model, table = as_single(model_of(name)), table_of(name)
    start = table.draw(64, table.law(), seed=0)
    depth = len(model.units)
    masks: Clamp = tuple(
        # A softmax variable is held as a whole or not at all.
        np.full(units.size, bool(layer % 2))
        if isinstance(units, Categorical)
        else np.arange(units.size) % 2 == layer % 2
        for layer, units in enumerate(model.units)
    )
    clamps: list[Clamp] = [masks]
    if depth > 1:  # of one layer, held as a whole, nothing could move
        clamps += [(True, *[None] * (depth - 1)), (*[False] * (depth - 1), True)]

    @jax.jit
    def three_sweeps(model: Any, particles: Configuration) -> list[Configuration]:
        noise = Noise.from_key(jax.random.key(0))

        def sweep(index: jax.Array, ends: list[Configuration]) -> list[Configuration]:
            return [
                model.sweep(noise.at(index), now, clamp=clamp)
                for clamp, now in zip(clamps, ends, strict=True)
            ]

        return jax.lax.fori_loop(0, 3, sweep, [particles] * len(clamps))

    for clamp, end in zip(clamps, three_sweeps(model, start), strict=True):
        moved = 0
        for held, before, after in zip(clamp, start, end, strict=True):
            mask = np.broadcast_to(np.asarray(held if held is not None else False), before.shape[-1])
            np.testing.assert_array_equal(before[:, mask], np.asarray(after)[:, mask])
            moved += int((before[:, ~mask] != np.asarray(after)[:, ~mask]).sum())
        assert moved > 0


@models
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parameters_rebuild_the_model(name: str, dtype: type) -> None:
    with jax.enable_x64(True):
        model = jax.tree.map(lambda leaf: np.asarray(leaf, dtype), model_of(name))
        again = type(model).from_arrays(**model.parameters())
        assert jax.tree.structure(again) == jax.tree.structure(model)
        for left, right in zip(jax.tree.leaves(model), jax.tree.leaves(again), strict=True):
            assert right.dtype == dtype
            np.testing.assert_array_equal(left, right)
        assert jax.eval_shape(lambda rows: again.energy(rows), table_of(name).layers).dtype == dtype


@models
def test_centred_coordinates_describe_the_same_machine(name: str) -> None:
    """``to_centred`` then ``from_centred`` is the identity, both ways, and the energy is the centred one."""
    case, table = case_of(name), table_of(name)
    with jax.enable_x64(True):
        model = jax.tree.map(jnp.asarray, model_of(name))
        offsets = tuple(
            jnp.asarray(wave_vector(units.size, 0.3 + layer)) for layer, units in enumerate(model.units)
        )
        centred = model.to_centred(offsets)
        for there_and_back in (
            centred.from_centred(offsets),
            model.from_centred(offsets).to_centred(offsets),
        ):
            for left, right in zip(jax.tree.leaves(model), jax.tree.leaves(there_and_back), strict=True):
                np.testing.assert_allclose(left, right, rtol=1e-14, atol=1e-15)
        # Differences of the centred energy, written out, are differences of the energy: the law has not moved.
        assert distance_of_laws(case, centred, offsets, table) < 1e-12
        # The gauge move without its compensation does move it: the check can fail.
        if jax.tree.leaves(model.couplings):
            assert distance_of_laws(case, model, offsets, table) > 1e-3


def distance_of_laws(case: ModelCase, centred: Any, offsets: tuple, table: Table) -> float:
    """Largest change of an energy difference when arrays are read as centred parameters, by the written-out energy."""
    shifted = tuple(layer - np.asarray(offset) for layer, offset in zip(table.layers, offsets, strict=True))
    energy = case.energy(zeroed(centred, "units").parameters(), shifted)
    energy = energy + case.energy(zeroed(centred, "couplings").parameters(), table.layers)
    constant = energy - table.energy
    return float(constant.max() - constant.min())


def zeroed(model: Any, what: str) -> Any:
    """The model, or both ends of the path, without its biases ("units") or without its weights ("couplings")."""

    def arrays(model: Any) -> list:
        ends = (model.base, model.model) if isinstance(model, Path | MachinePath) else (model,)
        return [leaf for end in ends for leaf in jax.tree.leaves(getattr(end, what))]

    return eqx.tree_at(arrays, model, replace_fn=np.zeros_like) if arrays(model) else model


@models
def test_a_sweep_has_the_kernel_of_the_table(name: str) -> None:
    """From one configuration, one sweep reaches every other with the exact probability: it is right and it moves."""
    model, table = model_of(name), table_of(name)
    start = table.count // 3
    particles = tuple(
        np.broadcast_to(layer[start].astype(np.float32), (CHAINS, layer.shape[1])) for layer in table.layers
    )
    row = table.sweep_kernel()[start]
    assert power_against(np.eye(table.count)[start], row, CHAINS) >= POWER
    assert agreement(table.counts(swept(model, particles, seed=3)), row) > FALSE_ALARM


@models
def test_a_tempered_sweep_keeps_the_law_of_each_row(name: str) -> None:
    """Chains at two inverse temperatures side by side, each started at its own exact law, stay there.

    The mistake that would be caught with computed power: one temperature for all.
    """
    model, table = model_of(name), table_of(name)
    betas = (0.4, 1.6)
    starts = [table.draw(CHAINS, table.law(beta), seed=index) for index, beta in enumerate(betas)]
    particles = tuple(np.concatenate(pair) for pair in zip(*starts, strict=True))
    after = tempered_sweep(4, as_single(model), particles, np.repeat(np.array(betas, np.float32), CHAINS))
    for index, beta in enumerate(betas):
        counts = table.counts(tuple(layer[index * CHAINS : (index + 1) * CHAINS] for layer in after))
        assert power_against(table.law(beta) @ table.sweep_kernel(), table.law(beta), CHAINS) >= POWER
        assert agreement(counts, table.law(beta)) > FALSE_ALARM


@models
def test_methods_broadcast_over_leading_axes(name: str) -> None:
    """A block of rows and one row alone, in float32, against the table in float64."""
    model, table = as_single(model_of(name)), table_of(name)
    chosen = np.arange(6) % table.count
    rows = tuple(layer[chosen].reshape(2, 3, -1).astype(np.float32) for layer in table.layers)
    one = tuple(layer[0, 0] for layer in rows)
    many, single = jax.jit(lambda model, rows, one: (answers(model, rows), answers(model, one)))(
        model, rows, one
    )
    exact = exact_answers(name)
    for found, expected in zip(jax.tree.leaves(many), jax.tree.leaves(exact), strict=True):
        expected = np.broadcast_to(expected, (table.count, *found.shape[2:]))
        assert found.shape[:2] == (2, 3)
        np.testing.assert_allclose(
            np.asarray(found), expected[chosen].reshape(found.shape), rtol=1e-5, atol=2e-6
        )
    for found, row in zip(jax.tree.leaves(single), jax.tree.leaves(many), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(row)[0, 0], rtol=1e-5, atol=2e-6)
    moved = jax.eval_shape(lambda rows: model.sweep(Noise.from_key(jax.random.key(0)), rows), rows)
    assert [layer.shape for layer in moved] == [layer.shape for layer in rows]


@models
def test_configurations_that_do_not_fit_are_refused(name: str) -> None:
    model, table = model_of(name), table_of(name)
    rows = tuple(layer[:2].astype(np.float32) for layer in table.layers)
    with pytest.raises(SettingError, match=f"has {len(rows)} layers, got {len(rows) - 1}"):
        model.energy(rows[:-1])
    with pytest.raises(SettingError, match=r"layer 0 has .* units, got an array of shape"):
        model.energy((np.ones((2, 9), np.float32), *rows[1:]))
    if len(rows) > 1:
        with pytest.raises(
            SettingError, match=r"leading shapes \(3,\), \(2,\).*; pass as many rows in each layer"
        ):
            model.energy((np.ones((3, table.sizes[0]), np.float32), *rows[1:]))
    if not isinstance(model, AbstractBipartite):
        return
    for side in (0, 1):
        with pytest.raises(SettingError, match=rf"layer {side} has .* units, got an array of shape"):
            model.marginal_energy(side, tuple(np.ones((2, 9), np.float32) for _ in model.sides[side]))
    for side in (0, 1):
        with pytest.raises(
            SettingError, match=rf"side {side} of this .* got {len(model.sides[side]) + 1} arrays"
        ):
            model.marginal_energy(side, (*(rows[i] for i in model.sides[side]), np.ones((2, 3), np.float32)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((wave_matrix(3, 4), wave_vector(4), wave_vector(3)), "must be visible by hidden, here \\(4, 3\\)"),
        ((wave_vector(4), wave_vector(4), wave_vector(3)), "weights must have 2 axes"),
        ((np.full((2, 2), np.nan), np.zeros(2), np.zeros(2)), "weights holds a number that is not finite"),
        (
            (np.zeros((2, 2)), np.zeros(0), np.zeros(2)),
            "visible_bias must have 1 axes and at least one entry",
        ),
        ((np.zeros((2, 2)), np.array(["a", "b"]), np.zeros(2)), "visible_bias must hold real numbers"),
    ],
)
def test_arrays_that_make_no_rbm_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        RBM.from_arrays(*arguments)


def test_an_rbm_of_sizes_or_layers() -> None:
    model = RBM(4, 3, seed=1)
    assert np.asarray(model.parameters()["weights"]).std() == pytest.approx(0.01, rel=1)
    again, other = RBM(4, Bernoulli(3), seed=1), RBM(4, 3, seed=2)
    np.testing.assert_array_equal(model.parameters()["weights"], again.parameters()["weights"])
    assert not np.array_equal(model.parameters()["weights"], other.parameters()["weights"])
    # One hidden unit and one visible unit are machines like any other.
    assert RBM(1, 1).free_energy(np.zeros(1)).shape == ()
    with pytest.raises(SettingError, match="at least 1"):
        RBM(4, 0)
