"""Ensembles as values: what goes in comes out, and what does not belong together is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harmonium as hm
from harmonium.energy.base import check_model
from harmonium.errors import SettingError

MODELS = [hm.RBM(hm.Spin(5), 3, seed=seed) for seed in range(4)]


def assert_equal(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    left, right = one.parameters(), other.parameters()
    assert left.keys() == right.keys()
    for key, value in left.items():
        np.testing.assert_array_equal(value, right[key])
        assert not hasattr(value, "dtype") or value.dtype == right[key].dtype


def test_members_come_out_as_they_went_in() -> None:
    ensemble = hm.Ensemble.of(MODELS)
    assert len(ensemble) == 4
    assert len(list(ensemble)) == 4
    for number, (member, model) in enumerate(zip(ensemble, MODELS, strict=True)):
        assert_equal(member, model)
        assert_equal(ensemble.member(np.int64(number)), model)
    assert ensemble.sound == (0, 1, 2, 3)
    assert hm.Ensemble(ensemble.stacked, ["", "fell apart", "", ""]).sound == (0, 2, 3)


def test_files_keep_members_their_dtype_and_their_faults(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    doubles = [hm.RBM.from_arrays(rng.normal(size=(3, 2)), np.zeros(3), np.ones(2)) for _ in range(3)]
    for name, models, faults in (("single", MODELS, ()), ("double", doubles, ("", "fell apart", ""))):
        ensemble = hm.Ensemble(hm.Ensemble.of(models).stacked, faults)
        again = hm.load(hm.save(ensemble, tmp_path / f"{name}.safetensors"))
        assert isinstance(again, hm.Ensemble)
        assert again.faults == faults
        for member, model in zip(again, models, strict=True):
            assert_equal(member, model)
    alone = hm.load(hm.save(ensemble.member(2), tmp_path / "one.safetensors"))
    assert_equal(alone, doubles[2])


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "at least one model, got none"),
        ([hm.RBM(4, 2), hm.RBM(4, 3)], "member 1 is a RBM of 4 bernoulli - 3 bernoulli"),
        ([hm.RBM(4, 2), hm.RBM(hm.Spin(4), 2)], "member 1 is a RBM of 4 spin"),
        (
            [hm.RBM(4, 2), hm.RBM.from_arrays(np.zeros((4, 2)), np.zeros(4), np.zeros(2))],
            "float64 and member 0",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(models: list[Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        hm.Ensemble.of(models)


@pytest.mark.parametrize("number", [-1, 4, True])
def test_a_member_that_is_not_there(number: int) -> None:
    with pytest.raises(SettingError, match="has the members 0 to 3, got member"):
        hm.Ensemble.of(MODELS).member(number)


def test_faults_are_as_many_as_members() -> None:
    with pytest.raises(SettingError, match="4 members was given 1 faults"):
        hm.Ensemble(hm.Ensemble.of(MODELS).stacked, ["one"])


def test_what_needs_one_model_says_how_to_take_one_out() -> None:
    with pytest.raises(
        SettingError, match=r"got Ensemble; take a member out of it, such as ensemble\.member"
    ):
        check_model(hm.Ensemble.of(MODELS))


RING, CHAIN = [[0, 1], [1, 2], [0, 2]], [[0, 1], [1, 2]]


def test_members_that_couple_other_pairs_are_told_which() -> None:
    with pytest.raises(
        SettingError, match="member 1 has 2 pairs and member 0 has 3 pairs, such as 0 - 2, which"
    ):
        hm.Ensemble.of([hm.BoltzmannMachine(3, pairs=pairs) for pairs in (RING, CHAIN)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hm.Ensemble.of(None), "a list of models, got None; pass"),
        (lambda: hm.Ensemble.of(MODELS[0]), "a list of models, got RBM; pass"),
        (lambda: hm.Ensemble(5), "got 5; use"),  # pyright: ignore[reportArgumentType]
        (lambda: hm.Ensemble(None), "got None; use"),  # pyright: ignore[reportArgumentType]
        (lambda: hm.Ensemble(MODELS[0]), "this RBM have no member axis"),
        (lambda: hm.Ensemble(hm.Ensemble.of(MODELS).stacked, 5), "one text for each member, got 5"),  # pyright: ignore[reportArgumentType]
        (lambda: hm.Ensemble(hm.Ensemble.of(MODELS).stacked, "abcd"), "one text for each member, got 'abcd'"),
    ],
)
def test_what_makes_no_ensemble_is_refused(make: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make()


def test_an_index_takes_a_member_out() -> None:
    ensemble = hm.Ensemble.of(MODELS)
    assert_equal(ensemble[2], MODELS[2])
    with pytest.raises(SettingError, match="members 0 to 3, got member -1; choose one of them"):
        ensemble[-1]
    with pytest.raises(SettingError, match="one member at a time, got a slice"):
        ensemble[1:3]
