"""The levels of a deep Boltzmann machine, and what they are worth put together: sums over all states, nothing drawn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.doubling import levels_of, merged
from harmonium.energy.rbm import RBM
from harmonium.errors import SettingError
from harmonium.train.levels import upside_down
from tests.contracts.machines import wave_layers
from tests.contracts.tables import Table

KINDS = pytest.mark.parametrize("kinds", [("bernoulli",) * 3, ("spin", "bernoulli", "spin")])


def law_of(machine: hm.RBM | hm.DBM, layer: int) -> dict[tuple[float, ...], float]:
    """Probability of every state of a layer by the sum over all states of all layers."""
    table = Table.of(machine)
    weight = np.exp(-table.energy)
    found: dict[tuple[float, ...], float] = {}
    for state, share in zip(map(tuple, table.layers[layer].tolist()), weight / weight.sum(), strict=True):
        found[state] = found.get(state, 0.0) + share
    return found


def copies_of(rbm: hm.RBM) -> dict[tuple[float, ...], float]:
    """The law of *one copy* of visible pairs: from their mean, and which copy is which where they differ."""
    low, high = rbm.units[0].ends
    found: dict[tuple[float, ...], float] = {}
    for pair, share in law_of(rbm, 0).items():
        middle = [place for place, value in enumerate(pair) if value not in (low, high)]
        for bits in np.ndindex(*[2] * len(middle)):
            copy = list(pair)
            for place, bit in zip(middle, bits, strict=True):
                copy[place] = (low, high)[bit]
            key = tuple(copy)
            found[key] = found.get(key, 0.0) + share / 2 ** len(middle)
    return found


def close(one: dict, other: dict) -> None:
    assert one.keys() == other.keys()
    np.testing.assert_allclose(
        [one[key] for key in sorted(one)], [other[key] for key in sorted(one)], atol=1e-12
    )


@KINDS
def test_a_machine_is_the_merge_of_its_levels(kinds: tuple[str, ...]) -> None:
    for sizes in ((4, 3), (4, 3, 2), (4, 3, 2, 3)):
        dbm = wave_layers(*zip((*kinds, "bernoulli"), sizes, strict=False))
        again = merged(levels_of(dbm))
        assert jax.tree.structure(again) == jax.tree.structure(dbm)
        assert all(jax.tree.leaves(jax.tree.map(np.array_equal, again, dbm)))


def test_a_level_hears_twice_from_the_layer_whose_fellow_is_missing() -> None:
    """Twice the weights *and* biases one way, once the other; between, twice both ways, which is an ordinary RBM."""
    dbm = wave_layers(("bernoulli", 4), ("bernoulli", 3), ("bernoulli", 2), ("bernoulli", 3))
    bottom, middle, top = levels_of(dbm)
    weights, biases = (dbm.parameters()[name] for name in ("weights", "biases"))
    lower, upper = np.eye(4)[:2], np.array([[1.0, 0, 1], [0, 1, 1]])
    between = np.array([[1.0, 1], [0, 1]])

    def means(rbm: hm.RBM, below: np.ndarray, above: np.ndarray) -> list[np.ndarray]:
        return [
            np.asarray(rbm.units[side].mean(rbm.field(side, (jnp.asarray(below), jnp.asarray(above)))))
            for side in (0, 1)
        ]

    def logistic(field: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-field))

    with jax.enable_x64(True):
        for rbm, states, (down, up) in (
            (bottom, (lower, upper), (1, 2)),
            (middle, (upper, between), (2, 2)),
            (top, (between, upper), (2, 1)),
        ):
            place = [bottom, middle, top].index(rbm)
            # An inner bias stands in two levels, with half of it in each.
            b, c = (biases[place + side] / (1 if place + side in (0, 3) else 2) for side in (0, 1))
            expected = [
                logistic(down * (b + states[1] @ weights[place].T)),
                logistic(up * (c + states[0] @ weights[place])),
            ]
            for found, right in zip(means(rbm, *states), expected, strict=True):
                np.testing.assert_allclose(found, right, atol=1e-14)


@KINDS
def test_the_machine_of_two_levels_is_their_geometric_mean(kinds: tuple[str, ...]) -> None:
    """For any parameters, and not only for levels that were cut out of one machine."""
    bottom, _ = levels_of(wave_layers(*zip(kinds, (4, 3, 2), strict=True)))
    _, top = levels_of(wave_layers(*zip(kinds, (2, 3, 4), strict=True)))
    one, two, whole = (
        law_of(machine, layer) for machine, layer in ((bottom, 1), (top, 0), (merged([bottom, top]), 1))
    )
    product = {state: np.sqrt(one[state] * two[state]) for state in whole}
    assert abs(np.log(sum(product.values()))) > 0.005  # the levels disagree
    close(whole, {state: value / sum(product.values()) for state, value in product.items()})


@KINDS
def test_a_second_level_that_is_the_first_upside_down_leaves_the_rows_as_they_are(
    kinds: tuple[str, ...],
) -> None:
    bottom, top = levels_of(wave_layers(*zip((kinds[0], kinds[1], kinds[0]), (4, 3, 4), strict=True)))
    close(law_of(merged([bottom, upside_down(bottom)]), 0), copies_of(bottom))
    # That of undoubled biases, summed all the same, is another one.
    halved = [units.bias for units in bottom.units]
    other = RBM.from_arrays(
        bottom.parameters()["weights"], *halved, visible=bottom.units[0].kind, hidden=bottom.units[1].kind
    )
    assert (
        max(abs(law_of(merged([other, top]), 0)[key] - share) for key, share in copies_of(bottom).items())
        > 1e-3
    )


def test_without_weights_every_marginal_is_kept() -> None:
    """The marginal of .711 that undoubled biases would make .858."""
    bias = np.log(0.711 / 0.289)
    bottom = RBM.from_arrays(np.zeros((2, 1)), [2.0, -2], [bias], visible="bernoulli-pair")
    top = RBM.from_arrays(np.zeros((1, 2)), [bias], [0.0, 1], hidden="bernoulli-pair")
    dbm = merged([bottom, top])
    assert law_of(dbm, 1)[(1.0,)] == pytest.approx(0.711)
    assert law_of(dbm, 0)[(1.0, 0.0)] == pytest.approx(1 / (1 + np.exp(-1)) ** 2)
    assert 1 / (1 + np.exp(-2 * bias)) == pytest.approx(0.858, abs=5e-4)


def test_a_machine_of_one_hidden_layer_is_the_rbm_itself() -> None:
    dbm = wave_layers(("bernoulli", 4), ("bernoulli", 3))
    (only,) = levels_of(dbm)
    assert [units.kind for units in only.units] == ["bernoulli", "bernoulli"]
    close(law_of(only, 0), law_of(dbm, 0))


def test_the_likelihood_of_pairs_is_that_of_both_copies() -> None:
    bottom, top = levels_of(wave_layers(("bernoulli", 4), ("bernoulli", 3), ("bernoulli", 2)))
    rows = np.array([[1, 0, 1, 0], [0, 0, 1, 1]])
    found = hm.log_likelihood(bottom, rows, rows=True)
    assert found.kind == "exact"
    law = law_of(bottom, 0)
    np.testing.assert_allclose(found.value, np.log([law[tuple(row)] for row in rows.tolist()]), atol=1e-12)
    weight = np.exp(-Table.of(top).energy)
    assert hm.log_partition(top).value == pytest.approx(np.log(weight.sum()), abs=1e-12)


def test_levels_that_do_not_lie_on_each_other_are_refused() -> None:
    bottom, top = levels_of(wave_layers(("bernoulli", 4), ("bernoulli", 3), ("bernoulli", 2)))
    with pytest.raises(
        SettingError, match="level 0 has 3 bernoulli hidden units and level 1 2 bernoulli-pair"
    ):
        merged([bottom, upside_down(top)])
    with pytest.raises(SettingError, match="the visible layer of level 0 must be pairs, got bernoulli units"):
        merged([hm.RBM(4, 3), top])
    with pytest.raises(SettingError, match="there are no pairs of bernoulli-pair units"):
        levels_of(
            hm.DBM.from_arrays(
                [np.ones((2, 1)), np.ones((1, 1))],
                [np.zeros(2), [0.0], [0.0]],
                ["bernoulli-pair", "bernoulli", "spin"],
            )
        )
