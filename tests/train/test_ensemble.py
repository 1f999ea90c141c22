"""Ensembles: every member is the run alone with its seed, and what happens to one happens to no other."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import SettingError
from tests.train.runs import ROWS, UPDATES, assert_same, bits, interrupted, interrupting_after, train

RULES = {"pcd": hm.PCD(chains=16), "cd": hm.CD(2), "plain": hm.PCD(steps=2, chains=9, centred=False)}
GREY = hm.load_data(np.random.default_rng(1).random((37, 6)), binarize="stochastic")
WEIGHTED = hm.load_data(ROWS, weight=np.arange(37.0))


def of_seeds(*seeds: int) -> hm.Ensemble:
    return hm.Ensemble.of([hm.RBM(6, 4, seed=seed) for seed in seeds])


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        ("pcd", {}),
        ("cd", {"momentum": 0.5, "weight_decay": 1e-3}),
        ("plain", {"optimizer": "adam", "learning_rate": 0.01}),
        ("pcd", {"data": GREY}),
        ("cd", {"data": WEIGHTED, "batch_size": 100}),
    ],
    ids=["ragged", "momentum", "adam", "stochastic", "weights"],
)
def test_every_member_is_the_run_alone_with_its_seed(rule: str, settings: dict[str, Any]):
    """Model, chains and offsets, and nothing of one member is that of another.

    The sums of a mapped program may be taken in another order, so that numbers agree to rounding; over these few
    updates no draw is near enough to its threshold to fall otherwise.
    """
    start, shared = of_seeds(1, 2, 5), {"rule": RULES[rule], "updates": 60, **settings}
    run = train(None, model=start, **shared)
    assert isinstance(run.model, hm.Ensemble)
    for number in range(3):
        alone = train(None, model=start.member(number), **{**shared, "seed": hm.member_seed(3, number)})
        assert run.state is not None
        assert alone.state is not None
        for found, wanted in zip(
            jax.tree.leaves((run.state.model, run.state.rule_state)),
            jax.tree.leaves((alone.state.model, alone.state.rule_state)),
            strict=True,
        ):
            np.testing.assert_allclose(found[number], wanted, atol=2e-6)
    weights = [member.parameters()["weights"] for member in run.model]
    assert all(np.abs(weights[one] - weights[other]).max() > 1e-3 for one, other in ((0, 1), (0, 2), (1, 2)))
