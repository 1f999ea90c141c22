from __future__ import annotations

import itertools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.report.summaries import inspect_machine, inspect_parameters, summarise_model


def test_a_model_in_numbers() -> None:
    model = hm.RBM(hm.Spin(3), hm.Bernoulli(2), seed=0)
    assert summarise_model(model) == {
        "kind": "RBM",
        "layers": [{"units": "spin", "size": 3}, {"units": "bernoulli", "size": 2}],
        "parameters": 11,
        "dtype": "float32",
    }


@pytest.mark.parametrize("visible", ["bernoulli", "spin"])
@pytest.mark.parametrize("hidden", ["bernoulli", "spin"])
def test_constant_and_unused_units_are_those_of_enumeration(visible: str, hidden: str) -> None:
    noise = np.random.default_rng(0)
    weights = noise.normal(size=(4, 30)) * np.repeat([0.005, 0.3, 3.0], 10)
    bias = noise.normal(size=30) * 6
    model = hm.RBM.from_arrays(weights, np.zeros(4), bias, visible=visible, hidden=hidden)
    low, high = model.units[0].support
    states = np.array(list(itertools.product((low, high), repeat=4)))
    fields = states @ weights + bias
    means = np.asarray(model.units[1].mean(jnp.asarray(fields)))
    bottom, top = model.units[1].support
    share = (means - bottom) / (top - bottom)
    constant = (share.min(axis=0) > 0.995) | (share.max(axis=0) < 0.005)
    unused = (np.ptp(fields, axis=0) < 0.1) & ~constant
    (found,) = inspect_parameters(model)
    assert found["constant"] == np.flatnonzero(constant).tolist()
    assert found["unused"] == np.flatnonzero(unused).tolist()
    assert 0 < len(found["constant"]) < 30
    assert len(found["unused"]) > 0


def test_a_general_machine_that_is_not_finite_is_told() -> None:
    machine = hm.BoltzmannMachine(3, seed=0)
    assert inspect_machine(machine)["finite"]
    broken = eqx.tree_at(lambda tree: tree.units[0].bias, machine, jnp.array([0.0, jnp.nan, 0.0]))
    assert not inspect_machine(broken)["finite"]
