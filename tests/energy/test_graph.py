"""Graphs: colourings that are right and small, values that hash, and lattices."""

import jax
import numpy as np
import pytest

from harmonium.energy.couplings.graph import Graph, grid
from harmonium.errors import SettingError
from tests.contracts.machines import wave_machine


def random_graph(size: int, share: float, seed: int) -> Graph:
    pairs = np.stack(np.triu_indices(size, 1), axis=1)
    return Graph(size, pairs[np.random.default_rng(seed).random(len(pairs)) < share])


@pytest.mark.parametrize(
    ("graph", "most"),
    [
        (Graph(7), 7),
        (Graph(7, np.zeros((0, 2), int)), 1),
        (Graph(20, grid(4, 5)), 2),
        (Graph(20, grid(4, 5, periodic=True)), 3),
        (Graph(36, grid(6, 6, periodic=True)), 2),
        (random_graph(30, 0.2, 0), 6),
        (random_graph(30, 0.9, 1), 20),
    ],
)
def test_no_two_units_of_a_colour_are_coupled(graph: Graph, most: int) -> None:
    colours = graph.colours(np.arange(graph.size))
    assert sorted(unit for colour in colours for unit in colour) == list(range(graph.size))
    assert len(colours) <= most
    for colour in colours:
        assert not graph.adjacency[np.ix_(colour, colour)].any()
    sizes = [len(colour) for colour in colours]
    assert sizes == sorted(sizes, reverse=True)
    # Of some units alone: what is coupled to others does not matter.
    some = graph.colours(np.arange(1, graph.size, 2))
    assert sorted(unit for colour in some for unit in colour) == list(range(1, graph.size, 2))


def test_a_graph_is_a_value() -> None:
    one, same, other = Graph(4, [[0, 1], [3, 2]]), Graph(4, [[2, 3], [1, 0]]), Graph(4, [[0, 1]])
    assert one == same
    assert hash(one) == hash(same)
    assert one not in (other, Graph(4), Graph(5, [[0, 1], [2, 3]]), 4)
    assert Graph(4) == Graph(4)
    assert Graph(4) != Graph(5)
    assert repr(one) == "Graph(4, 2 pairs)"
    assert repr(Graph(4)) == "Graph(4)"
    everything = Graph(3, [[0, 1], [0, 2], [1, 2]])
    np.testing.assert_array_equal(everything.places, Graph(3).places)


@pytest.mark.parametrize(
    ("rows", "columns", "periodic", "count"),
    [(1, 1, True, 0), (1, 5, True, 5), (2, 2, True, 4), (3, 3, True, 18), (3, 4, False, 17)],
)
def test_lattices(rows: int, columns: int, periodic: bool, count: int) -> None:
    pairs = grid(rows, columns, periodic=periodic)
    assert len(pairs) == count
    Graph(rows * columns, pairs)


def test_a_lattice_has_a_side() -> None:
    with pytest.raises(SettingError, match="whole number of rows and columns"):
        grid(0, 3)


def test_each_pair_is_one_parameter() -> None:
    """So many numbers as there are pairs; the symmetric matrix is made of them and reads back."""
    machine = wave_machine(4, 2, pairs=np.array([[0, 4], [1, 2]]))
    assert machine.couplings[0].strengths.shape == (2,)
    matrix = machine.parameters()["coupling"]
    assert np.count_nonzero(matrix) == 4
    with jax.enable_x64(True):
        np.testing.assert_array_equal(matrix, np.asarray(machine.couplings[0].matrix()).T)
