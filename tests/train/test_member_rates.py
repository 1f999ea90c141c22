"""Members of an ensemble with learning rates of their own."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from harmonium.train.config import read_settings
from tests.train.runs import assert_same, interrupted, of_seeds, train


def test_members_have_rates_of_their_own():
    """Each is the run alone at its rate: the same numbers as the mapped program gives with one rate for all."""
    start, rates, lasts = of_seeds(1, 2, 5), [0.3, 0.0, 0.03], [0.0, 0.0, 0.03]
    shared: dict[str, Any] = {"rule": hm.PCD(chains=16), "updates": 60}
    run = train(None, model=start, learning_rate=np.array(rates), final_rate=tuple(lasts), **shared)
    assert run.state is not None
    for number, (rate, last) in enumerate(zip(rates, lasts, strict=True)):
        same = train(None, model=start, learning_rate=rate, final_rate=last, **shared)
        assert same.state is not None
        for found, wanted in zip(jax.tree.leaves(run.model), jax.tree.leaves(same.model), strict=True):
            np.testing.assert_allclose(found[number], wanted[number], atol=2e-6)
    assert run.config["train"]["learning_rate"] == [float(np.float32(rate)) for rate in rates]
    assert run.history[0]["learning_rate_high"] == pytest.approx(0.3, abs=0.03)
    still = start.member(1).parameters()["weights"]
    np.testing.assert_array_equal(run.model.member(1).parameters()["weights"], still)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": [0.1, 0.2]}, "learning_rate has 2 numbers, .* members=1"),
        ({"learning_rate": [0.1]}, "learning_rate has 1 numbers, .* members=1"),
        ({"members": 3, "learning_rate": [0.1, 0.2]}, "learning_rate has 2 numbers, .* members=3"),
        ({"members": 2, "final_rate": [0.1]}, "final_rate has 1 numbers, .* members=2"),
        ({"members": 2, "learning_rate": [0.1, -0.2]}, "train.learning_rate.1=-0.2 .* at least 0"),
        ({"learning_rate": -0.2}, "train.learning_rate=-0.2 .* at least 0"),
    ],
)
def test_rates_that_fit_no_members_are_refused(settings: dict[str, Any], message: str):
    with pytest.raises(SettingError, match=message):
        train(None, **settings)


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ("fast", "train.learning_rate='fast' .* a number"),
        (["fast"], "train.learning_rate.0='fast' .* a number"),
    ],
)
def test_rates_are_numbers(rates: Any, message: str):
    with pytest.raises(SettingError, match=message):
        read_settings({"train": {"learning_rate": rates}})


def test_a_run_with_rates_of_members_is_gone_on_with(tmp_path: Path):
    shared: dict[str, Any] = {"members": 3, "learning_rate": [0.3, 0.1, 0.03]}
    expected = train(tmp_path / "whole", **shared)
    interrupted(tmp_path / "run", 200, **shared)
    assert_same(hm.resume(tmp_path / "run"), expected)
