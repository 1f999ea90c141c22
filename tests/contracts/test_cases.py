"""Nothing enters the library without its row, and the rulers that the proofs measure with are right themselves."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.stats

import harmonium
from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.doubling import levels_of
from harmonium.evaluate.estimate import Estimate
from harmonium.inference.base import AbstractInference
from harmonium.inference.names import INFERENCES as INFERENCE_NAMES
from harmonium.rules.base import AbstractRule
from harmonium.rules.names import RULES as RULE_NAMES
from harmonium.samplers.base import AbstractSampler
from harmonium.units.base import AbstractUnits
from harmonium.units.kinds import UNIT_KINDS
from tests.contracts.cases import DRAWN, EVALUATORS, EXACT_RULES, INFERENCES, RULES, SAMPLERS, UNITS
from tests.contracts.machines import wave_layers
from tests.contracts.model_cases import LABELLED, MODELS, model_of, table_of
from tests.contracts.tables import (
    FALSE_ALARM,
    agreement,
    cells,
    deviation_limit,
    deviation_power,
    power_against,
)


def members(kind: type) -> set[type]:
    """The final classes of a kind that the library defines."""
    found = set()
    for module in modules():
        for value in vars(module).values():
            if (
                inspect.isclass(value)
                and issubclass(value, kind)
                and value.__module__.startswith("harmonium.")
            ):
                found.add(value)
    return {
        member
        for member in found
        if not inspect.isabstract(member) and not member.__name__.startswith("Abstract")
    }


def modules() -> Iterator[object]:
    for info in pkgutil.walk_packages(harmonium.__path__, "harmonium."):
        if ".cli" not in info.name and ".report" not in info.name:
            yield importlib.import_module(info.name)


def test_every_kind_of_unit_has_its_row() -> None:
    assert members(AbstractUnits) == set(UNITS.values()) == set(UNIT_KINDS.values())
    assert UNITS.keys() == UNIT_KINDS.keys()


def test_every_model_has_its_row() -> None:
    found = members(AbstractEnergyModel)
    assert found
    assert found <= {type(model_of(name)) for name in MODELS}
    # Pairs are in the levels of deep machines alone, which tests/energy/test_doubling.py proves by sums over states.
    levels = [level for kind in ("bernoulli", "spin") for level in levels_of(wave_layers(*[(kind, 2)] * 3))]
    machines = [*(model_of(name) for name in (*MODELS, *LABELLED)), *levels]
    kinds = {units.kind for machine in machines for units in machine.units}
    assert {kind.partition(":")[0] for kind in kinds} == UNITS.keys()


def test_every_sampler_has_its_row() -> None:
    found = members(AbstractSampler)
    assert found
    assert found == {type(case.sampler) for case in SAMPLERS.values()}


def test_every_rule_and_inference_has_its_row() -> None:
    rules = [*(case.rule for case in RULES.values()), *EXACT_RULES.values()]
    assert members(AbstractRule) == {type(rule) for rule in rules}
    assert {row.split(",")[0] for row in (*RULES, *EXACT_RULES)} == RULE_NAMES.keys()
    assert members(AbstractInference) == {type(case.inference) for case in INFERENCES.values()}
    assert INFERENCES.keys() == INFERENCE_NAMES.keys()


def test_every_public_estimate_has_its_row() -> None:
    returning = {
        name
        for name in harmonium.__all__
        if inspect.isroutine(function := getattr(harmonium, name))
        and inspect.signature(function).return_annotation in ("Estimate", Estimate)
    }
    assert returning == EVALUATORS.keys() | {"raise_likelihood"}
    assert DRAWN.keys() >= {name for name in returning if name.startswith("log_")}


def test_classes_are_abstract_or_final() -> None:
    looked = 0
    for kind in (AbstractUnits, AbstractEnergyModel, AbstractSampler, AbstractRule, AbstractInference):
        for member in members(kind):
            assert not [
                child for child in member.__subclasses__() if child.__module__.startswith("harmonium.")
            ]
            looked += 1
    assert looked >= 6


@pytest.mark.parametrize("name", MODELS)
def test_the_table_numbers_every_state_once(name: str) -> None:
    table = table_of(name)
    np.testing.assert_array_equal(table.codes(table.layers), np.arange(table.count))
    assert table.law().sum() == pytest.approx(1)
    kernel = table.sweep_kernel()
    np.testing.assert_allclose(kernel.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(table.law() @ kernel, table.law(), atol=1e-15)


def test_the_power_of_pearson_is_what_is_counted() -> None:
    """The computed power of a blunt comparison against the share of simulated experiments that fail."""
    table = table_of("rbm")
    law, chains = table.law(), 40_000
    mistaken = table.law(beta=0.94)
    generator = np.random.default_rng(0)
    power = power_against(mistaken, law, chains)
    assert 0.1 < power < 0.9
    failed = sum(agreement(generator.multinomial(chains, mistaken), law) < FALSE_ALARM for _ in range(400))
    assert scipy.stats.binomtest(failed, 400, power).pvalue > 1e-3
    alarms = sum(agreement(generator.multinomial(chains, law), law) < 0.05 for _ in range(400))
    assert scipy.stats.binomtest(alarms, 400, 0.05).pvalue > 1e-3


def test_rare_states_share_a_cell() -> None:
    law = np.array([0.0, 1e-9, 1e-6, 0.1, 0.3, 0.6 - 1e-6 - 1e-9])
    cell = cells(law, 1000)
    assert cell[0] == -1
    assert cell[1] == cell[2] == cell[3] == 0
    assert len(set(cell[3:].tolist())) == 3
    np.testing.assert_array_equal(cells(np.full(4, 0.25), 1000), [0, 1, 2, 3])
    assert agreement(np.array([1, 0, 0, 100, 300, 600]), law) == 0
    assert power_against(np.array([0.1, 0, 0, 0, 0.3, 0.6]), law, 1000) > 0.999


def test_the_power_of_a_deviation() -> None:
    expected, stderr = np.zeros(2), np.ones(2)
    limit = deviation_limit(2)
    assert 2 * 2 * scipy.stats.norm.sf(limit) == pytest.approx(FALSE_ALARM)
    assert deviation_power(np.array([limit, 0.0]), expected, stderr) == pytest.approx(0.5)
    assert deviation_power(np.array([limit + 2.33, 0.0]), expected, stderr) > 0.99
