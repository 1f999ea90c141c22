"""RAISE against the enumerated law of the chain that annealing ends with: it bounds that, not the model."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import harmonium as hm
from harmonium.errors import DataError, SettingError
from harmonium.evaluate.ais import AIS, prepare
from harmonium.evaluate.estimate import Kind
from tests.contracts.model_cases import model_of, table_of
from tests.contracts.tables import Table, normalised


def law_of_the_chain(name: str, settings: AIS) -> tuple[np.ndarray, np.ndarray]:
    """Visible states, and their exact log-probability at the end of the annealing chain that `prepare` sets up."""
    model, table = model_of(name), table_of(name)
    states, _ = table.marginal(0, table.law())
    prepared = prepare(model, states, settings, 0)
    assert prepared.side is not None
    walked = model.sides[prepared.side]
    other = model.sides[1 - prepared.side]
    with jax.enable_x64(True):
        tables = [
            Table.of(jax.tree.map(np.float64, prepared.path.at(np.float64(beta)))) for beta in prepared.betas
        ]
    law = normalised(-tables[0].energy)
    for here in tables[1:]:
        law = law @ here.block_kernel(other) @ here.block_kernel(walked)
    last = law if prepared.side == 0 else law @ tables[-1].block_kernel((0,))
    # With the hidden side walked, a row is drawn from the state before the last transition's own draw.
    if prepared.side == 1:
        law = normalised(-tables[0].energy)
        for here in tables[1:-1]:
            law = law @ here.block_kernel(other) @ here.block_kernel(walked)
        last = law @ tables[-1].block_kernel((0,))
    return states, np.log(table.marginal(0, last)[1])


@pytest.mark.parametrize("name", ["strong rbm", "rbm of spins", "rbm, more hidden than visible"])
@pytest.mark.parametrize("temperatures", [1, 4])
def test_it_is_the_law_of_the_chain_and_not_of_the_model(name: str, temperatures: int) -> None:
    """With many chains a row, it tends to the enumerated law of the chain; the model's own lies elsewhere."""
    settings = AIS(chains=4000, temperatures=temperatures)
    states, exact = law_of_the_chain(name, settings)
    estimate = hm.raise_likelihood(model_of(name), states, settings, rows=True)
    assert estimate.kind == Kind.PROXY
    errors = (estimate.value - exact) / np.maximum(estimate.stderr, 1e-5)
    assert np.abs(errors).max() < 5
    assert np.logaddexp.reduce(exact) == pytest.approx(0, abs=1e-9)
    if temperatures > 1:
        return
    model = hm.log_likelihood(model_of(name), states, rows=True).value
    assert (np.abs(exact - model) > 5 * estimate.stderr).any()
    # It scores some rows higher than the model does: no lower bound of the likelihood.
    assert (estimate.value > model + 5 * estimate.stderr).any()


def test_it_comes_nearer_with_more_temperatures() -> None:
    model, table = model_of("strong rbm"), table_of("strong rbm")
    rows = table.draw(40, table.law(), 0)[0]
    exact = hm.log_likelihood(model, rows, rows=True).value
    distance = []
    for temperatures in (1, 300):
        settings = AIS(chains=200, temperatures=temperatures)
        distance.append(np.abs(hm.raise_likelihood(model, rows, settings, rows=True).value - exact).mean())
    assert distance[1] < 0.02 < distance[0] / 2
    many = hm.raise_likelihood(model, rows, settings)
    assert "not that of the model" in many.reason
    assert many.cost["chains"] == 8000
    assert many.row_stderr > 0


def test_what_it_cannot_score_is_refused() -> None:
    with pytest.raises(SettingError, match="whose visible layer is a side of its own"):
        hm.raise_likelihood(model_of("three layers"), np.zeros((2, 3)))
    with pytest.raises(DataError, match="have 5 columns but the model has 4"):
        hm.raise_likelihood(model_of("rbm"), np.zeros((2, 5)))
