"""Runs of objects that no settings can describe: they are passed again to go on."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import optax
import pytest

import harmonium as hm
from harmonium.energy.couplings.dense import Dense
from harmonium.energy.layered import AbstractLayered
from harmonium.errors import FileError, SettingError
from harmonium.rules.base import AbstractRule
from harmonium.train.fit import resume
from harmonium.train.optimizers import OPTIMIZERS
from harmonium.units.base import AbstractUnits
from tests.train.runs import assert_same, bits, interrupted, train


class Damped(AbstractRule):
    """Another rule at half its strength."""

    base: AbstractRule

    def init(self, words: Any, model: Any, batch: Any) -> Any:
        return {"base": self.base.init(words, model, batch), "updates": jnp.int32(0)}

    def loss(self, model: Any, step: Any, state: Any, batch: Any) -> Any:
        surrogate, (inner, info) = self.base.loss(model, step, state["base"], batch)
        return 0.5 * surrogate, ({"base": inner, "updates": state["updates"] + 1}, info)

    def offsets(self, state: Any) -> Any:
        return self.base.offsets(state["base"])

    def chains(self, state: Any) -> Any:
        return self.base.chains(state["base"])


class Homemade(AbstractLayered):
    """A model of a class that model files do not know."""

    units: tuple[AbstractUnits, ...]
    couplings: tuple[Dense, ...]

    def parameters(self) -> dict[str, Any]:
        return {"units": self.units, "couplings": self.couplings}


def homemade() -> Homemade:
    rbm = hm.RBM(6, 4, seed=1)
    return Homemade(rbm.units, rbm.couplings)


def clipped() -> optax.GradientTransformation:
    return optax.chain(
        optax.clip_by_global_norm(0.5), optax.sgd(optax.linear_schedule(0.3, 0.05, 400), momentum=0.5)
    )


CUSTOM: dict[str, Any] = {"rule": lambda: Damped(hm.PCD(chains=16)), "optimizer": clipped, "model": homemade}


@pytest.mark.parametrize("name", CUSTOM)
def test_a_custom_object_is_passed_again(tmp_path: Path, name: str):
    expected = train(tmp_path / "whole", **{name: CUSTOM[name]()})
    interrupted(tmp_path / "run", 200, **{name: CUSTOM[name]()})
    with pytest.raises(SettingError, match=f"pass {name}= again"):
        hm.resume(tmp_path / "run")
    run = resume(tmp_path / "run", **{name: CUSTOM[name]()})
    assert_same(run, expected)
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == (
        tmp_path / "whole" / "metrics.jsonl"
    ).read_bytes()


def test_a_custom_rule_of_another_state_is_refused(tmp_path: Path):
    interrupted(tmp_path / "run", 200, rule=Damped(hm.PCD(chains=16)))
    with pytest.raises(FileError, match="does not fit"):
        hm.resume(tmp_path / "run", rule=hm.PCD(chains=16))


def test_a_model_that_files_do_not_know_is_kept_in_checkpoints_only(tmp_path: Path):
    run = train(tmp_path / "run", model=homemade())
    assert not (tmp_path / "run" / "model.safetensors").exists()
    with pytest.raises(FileError, match=r"no model\.safetensors.*hm\.resume\(path, model=\.\.\.\)"):
        hm.load_run(tmp_path / "run")
    again = resume(tmp_path / "run", model=homemade())
    assert isinstance(again.model, Homemade)
    assert bits(again.model) == bits(run.model)


@pytest.mark.parametrize("optimizer", ["adam", "lamb"])
def test_the_state_of_an_optimiser_is_kept(tmp_path: Path, optimizer: str):
    assert optimizer in OPTIMIZERS
    expected = train(None, optimizer=optimizer, learning_rate=0.01)
    interrupted(tmp_path / "run", 200, optimizer=optimizer, learning_rate=0.01)
    assert_same(hm.resume(tmp_path / "run"), expected)
