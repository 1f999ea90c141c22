"""A deep Boltzmann machine trained level by level and then jointly: what that is worth, and that it survives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.doubling import levels_of
from harmonium.errors import SettingError
from harmonium.inference.exact import Exact
from harmonium.train.levels import as_network
from harmonium.train.stages import joint_settings
from tests.train.killing import remains
from tests.train.runs import bits

BARS = "bars-and-stripes:side=2"


def trained(**changes: Any) -> hm.Run:
    arguments: dict[str, Any] = {
        "model": hm.DBM(4, [3, 4], seed=1),
        "rule": hm.CD(1, final_steps=3),
        "updates": 300,
        "batch_size": 6,
        "learning_rate": 0.5,
        "seed": 2,
        "checkpoint_seconds": 0,
        "joint": {
            "rule": hm.PCD(steps=2, chains=30, inference="mean-field"),
            "updates": 250,
            "learning_rate": 0.1,
        },
        **changes,
    }
    return hm.fit_greedy(arguments.pop("model"), BARS, arguments.pop("rule"), **arguments)


def test_every_stage_is_worth_something_and_is_told() -> None:
    run = trained(updates=1000, joint={"updates": 1000, "rule": hm.PCD(steps=2, inference="mean-field")})
    assert isinstance(run.model, hm.DBM)
    first, second, joint = run.history
    assert [record["index"] for record in run.history] == [1000, 2000, 3000]
    assert (first["level"], second["level"], joint["joint"]) == (0, 1, True)
    assert {record["log_likelihood_kind"] for record in run.history} == {"exact"}
    start = hm.log_likelihood(hm.DBM(4, [3, 4], seed=1), BARS).value
    scores = [record["log_likelihood_train"] for record in run.history]
    assert min(scores) > start + 0.1
    assert scores[2] > max(scores[:2])
    assert scores[2] == pytest.approx(hm.log_likelihood(run.model, BARS).value, rel=1e-6)


class Interrupting:
    """Interrupts a run at its so many-th report."""

    def __init__(self, count: int):
        self.left = count

    def __call__(self, record: dict[str, Any], timing: dict[str, Any]) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_a_run_that_is_interrupted_in_every_stage_ends_bit_for_bit(tmp_path: Path) -> None:
    """The biases of the second level are told apart again, which the network in the folder has summed."""
    start = hm.DBM.from_arrays(
        [np.full((4, 3), 0.1), np.full((3, 2), -0.1)], [np.ones(4), np.full(3, 0.3), np.zeros(2)]
    )
    settings: dict[str, Any] = {"model": start, "rule": hm.CD(1, final_steps=3)}
    whole = trained(out=tmp_path / "whole", **settings)
    assert whole.model.units[1].size == 3
    with pytest.raises(KeyboardInterrupt):
        trained(out=tmp_path / "broken", reporter=Interrupting(3), **settings)
    count, run = 1, None
    while run is None and count < 20:
        assert not hm.load_run(tmp_path / "broken").finished
        try:
            run = hm.resume(tmp_path / "broken", reporter=Interrupting(3))
        except KeyboardInterrupt:
            count += 1
    assert run is not None
    assert count >= 4
    assert bits(run.model) == bits(whole.model)
    assert run.history == whole.history
    expected, found = remains(tmp_path / "whole"), remains(tmp_path / "broken")
    assert sorted(found) == sorted(expected)
    assert [file for file in expected if found[file] != expected[file]] == []
    assert {"start.safetensors", "joint/model.safetensors"} <= set(found)
    with pytest.raises(SettingError, match="is the joint training of the network in"):
        hm.resume(tmp_path / "whole" / "joint", updates=5)


def test_a_level_that_is_not_trained_begins_at_what_it_would_learn_from() -> None:
    run = trained(levels=1, updates=100, learning_rate=1e-6, joint=None, model=hm.DBM(4, [3, 2], seed=1))
    assert len(run.history) == 1
    below, above = levels_of(run.model)
    # Nothing has been learned, so that hidden units are on for half of the rows; the weights are those of the start.
    np.testing.assert_allclose(above.units[0].bias, 0, atol=0.05)
    np.testing.assert_array_equal(
        np.asarray(run.model.couplings[1].kernel), np.asarray(hm.DBM(4, [3, 2], seed=1).couplings[1].kernel)
    )
    assert below.units[1].kind == "bernoulli"


def test_a_network_is_prepared_for_deep_tempering_in_one_call() -> None:
    run = trained(
        model=hm.DBN(4, [3, 2], seed=1),
        levels=1,
        updates=100,
        joint={"rule": hm.DeepTempering(), "epochs": 100},
    )
    assert isinstance(run.model, hm.DBN)
    assert [record["index"] for record in run.history] == [100, 200]
    assert 0 <= run.history[-1]["swap_rate"] <= 1
    assert run.config["joint"]["name"] == "deep"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"joint": {"update": 5}}, "joint has no argument 'update'; it takes rule, epochs, updates"),
        ({"joint": {"updates": 5, "epochs": 2}}, "both epochs=2 and updates=5 are given"),
        (
            {"joint": {"learning_rate": -1.0}},
            r"joint.learning_rate=-1.0 cannot be used: it must be at least 0",
        ),
        ({"joint": {"rule": "pcd"}}, "a rule such as hm.PCD"),
        ({"rule": hm.PCD(inference="mean-field")}, "in a level hidden units are independent given the rows"),
        ({"rule": hm.ModeAssisted(hm.CD())}, "pairs of copies as units, of which no mode is looked for"),
        ({"levels": 3}, "levels=3 are asked for, but the network has 2"),
        ({"model": hm.DBM(4, [3, 2], labels=2)}, "level by level cannot take a machine with a label layer"),
    ],
)
def test_what_cannot_be_trained_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        trained(**changes)


def test_what_is_no_network_and_no_training_is_refused() -> None:
    with pytest.raises(SettingError, match="or a DBM, is trained level by level, got RBM"):
        as_network(hm.RBM(4, 2))
    with pytest.raises(SettingError, match="joint holds the arguments of a joint training by name, got 5"):
        joint_settings(5, hm.DBM(4, [3, 2]))
    with pytest.raises(SettingError, match="no settings describe the rule of the joint training"):
        joint_settings({"rule": hm.PCD(inference=Exact(bit_budget=3))}, hm.DBM(4, [3, 2]))
