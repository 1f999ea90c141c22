"""Structure drawings: as many nodes and edges as the machine has units and couplings, in the picture itself too."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.couplings.graph import grid
from harmonium.energy.independent import Independent
from harmonium.errors import SettingError
from harmonium.report.drawing import Drawing
from harmonium.report.names import SKETCHES, sketch
from harmonium.report.structure import Label, Structure, bipartite_structure, structure_of, unrolled_structure
from harmonium.units.categorical import Categorical

PAGES = Path(__file__).resolve().parents[2] / "docs" / "concepts"
SVG = "{http://www.w3.org/2000/svg}"

Odd = type("Odd", (AbstractEnergyModel,), dict.fromkeys(AbstractEnergyModel.__abstractmethods__))

COUNTS = {
    "bm": [(4, 6, 0), (6, 15, 0)],
    "rbm": [(7, 12, 0)],
    "dbn": [(10, 12, 12)],
    "dbm": [(10, 24, 0)],
    "dbm-bipartite": [(14, 36, 0), (14, 36, 0)],
    "dbm-training": [(7, 12, 0), (9, 18, 0), (12, 30, 0), (15, 0, 42)],
}


def drawn(svg: str) -> Counter[str]:
    """How often every class occurs in a picture."""
    return Counter(part.get("class", "") for part in ElementTree.fromstring(svg).iter())


def ends(panel: Structure) -> set[tuple[str, str, bool]]:
    """The edges of a panel by the names of their ends."""
    return {
        (str(panel.nodes[edge.start].label), str(panel.nodes[edge.end].label), edge.directed)
        for edge in panel.edges
    }


@pytest.mark.parametrize("name", SKETCHES)
def test_a_drawing_has_the_nodes_and_edges_of_its_machines(name: str) -> None:
    drawing = sketch(name)
    assert [(p.drawn_units, p.drawn_undirected, p.drawn_directed) for p in drawing.panels] == COUNTS[name]
    assert [(p.units, p.undirected, p.directed) for p in drawing.panels] == COUNTS[name]
    seen = drawn(drawing.svg)
    units, undirected, directed = np.sum(COUNTS[name], axis=0)
    assert seen["visible"] + seen["hidden"] + seen["label"] == units
    assert (seen["undirected"], seen["directed"], seen["more"]) == (undirected, directed, 0)


@pytest.mark.parametrize("name", SKETCHES)
def test_the_page_shows_what_the_command_draws(name: str) -> None:
    assert (PAGES / f"structure-{name}.svg").read_text(encoding="utf-8") == sketch(name).svg


def test_arrows_of_a_belief_network_point_down() -> None:
    panel = structure_of(hm.DBN(2, [2, 1]))
    assert ends(panel) == {
        ("h^(1)_1", "v_1", True),
        ("h^(1)_1", "v_2", True),
        ("h^(1)_2", "v_1", True),
        ("h^(1)_2", "v_2", True),
        ("h^(1)_1", "h^(2)_1", False),
        ("h^(1)_2", "h^(2)_1", False),
    }
    assert all(panel.nodes[e.start].up > panel.nodes[e.end].up for e in panel.edges if e.directed)


def test_the_two_sides_have_the_same_edges_and_none_within() -> None:
    machine = hm.DBM(2, [3, 2, 1])
    panel = bipartite_structure(machine)
    assert ends(panel) == ends(structure_of(machine))
    assert {abs(panel.nodes[e.start].up - panel.nodes[e.end].up) for e in panel.edges} == {3.2}


def test_the_unrolled_network_is_fed_with_data_and_means() -> None:
    panel = unrolled_structure(hm.DBM(1, [1, 1, 1]))
    assert ends(panel) == {
        ("v_1", "h^(1)_1", True),
        ("q^(2)_1", "h^(1)_1", True),
        ("h^(1)_1", "h^(2)_1", True),
        ("h^(2)_1", "y_1", True),
    }


def test_a_general_machine_has_the_edges_of_its_graph() -> None:
    panel = structure_of(hm.BoltzmannMachine(4, pairs=grid(2, 2)))
    assert ends(panel) == {
        ("v_1", "v_2", False),
        ("v_1", "v_3", False),
        ("v_2", "v_4", False),
        ("v_3", "v_4", False),
    }
    large = structure_of(hm.BoltzmannMachine(20, 3), most=4)
    assert (large.drawn_units, large.units) == (6, 23)
    assert (large.drawn_undirected, large.undirected) == (15, 253)


def test_a_label_layer_is_known_by_its_units() -> None:
    panel = structure_of(hm.DBM(1, [1, Categorical(2)]))
    assert [(str(node.label), node.kind) for node in panel.nodes] == [
        ("v_1", "visible"),
        ("h_1", "hidden"),
        ("y_1", "label"),
        ("y_2", "label"),
    ]


def test_layers_that_are_not_coupled_have_no_edges() -> None:
    panel = structure_of(Independent((hm.Bernoulli(3), hm.Bernoulli(2))))
    assert (panel.drawn_units, panel.edges, panel.undirected) == (5, (), 0)


def test_what_is_left_out_of_a_large_layer_is_counted() -> None:
    drawing = hm.figure(hm.RBM(784, 500), most=5)
    (panel,) = drawing.panels
    assert [(str(n.label), n.units) for n in panel.nodes if n.kind == "more"] == [("v", 780), ("h", 496)]
    assert [str(n.label) for n in panel.nodes if n.kind == "visible"] == ["v_1", "v_2", "v_3", "v_784"]
    assert (panel.drawn_undirected, panel.undirected) == (16, 392_000)
    assert "8 of 1,284 units drawn" in drawing.svg
    assert "16 of 392,000 undirected edges drawn" in drawing.svg
    assert drawn(drawing.svg)["more"] == 2
    assert drawing.describe()[0]["drawn"] == {"units": 8, "undirected": 16, "directed": 0}


def test_an_ensemble_is_drawn_once() -> None:
    drawing = hm.figure(hm.Ensemble.of([hm.RBM(3, 2, seed=seed) for seed in range(2)]))
    assert (drawing.panels[0].title, drawing.panels[0].units) == ("each of 2: RBM 3-2", 5)


def test_the_words_of_a_drawing_are_escaped_and_no_node_hides_another() -> None:
    panel = structure_of(hm.RBM(9, 1), title="a < b & 'c'", labels=(Label("<"), Label('"')))
    tree = ElementTree.fromstring(Drawing("odd", (panel,)).svg)
    assert any(part.text == "a < b & 'c'" for part in tree.iter(f"{SVG}text"))
    for name in SKETCHES:
        for shown in sketch(name).panels:
            places = np.array([(node.across, node.up) for node in shown.nodes])
            apart = np.linalg.norm(places[:, None] - places[None], axis=-1) + 9 * np.eye(len(places))
            assert apart.min() > 0.9, name


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(SettingError, match="no drawing is called 'rbn'"):
        sketch("rbn")
    with pytest.raises(SettingError, match="got Odd"):
        structure_of(object.__new__(Odd))
    with pytest.raises(SettingError, match="even and an odd side, got DBN"):
        hm.figure(hm.DBN(3, [2]), bipartite=True)
    with pytest.raises(SettingError, match="at least 3, got 2"):
        hm.figure(hm.RBM(3, 2), most=2)
    with pytest.raises(SettingError, match="four layers"):
        unrolled_structure(hm.RBM(3, 2))
    with pytest.raises(SettingError, match="2 layers, got 1"):
        structure_of(hm.RBM(3, 2), labels=[Label("v")])
    with pytest.raises(SettingError, match="no panels"):
        Drawing("none", ())
