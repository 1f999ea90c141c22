"""The gradient of a likelihood whose negative phase was sampled elsewhere."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from harmonium.energy.base import AbstractEnergyModel, check_model, check_two_valued
from harmonium.energy.guided import check_undirected
from harmonium.energy.variables import rows_of
from harmonium.evaluate.likelihood import visible_rows
from harmonium.evaluate.moments import real_parameters
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_double, in_double_precision
from harmonium.typing import Configuration, Layers


def gradient_from_samples(model: AbstractEnergyModel, data: Any, samples: Layers) -> dict[str, Any]:
    r"""Gradient of the mean log-likelihood of rows, the mean under the model taken over given samples, in float64.

    .. math:: \mathrm{E}_{data}[\partial_\theta(-E)] - \frac1M \sum_m \partial_\theta(-E)(\tilde x_m)

    The first term is exact, as in `harmonium.exact_gradient`; the second is as good as the samples, such as those of an
    annealer (`harmonium.interop.dimod.from_sampleset`): they must be at the model's own temperature, see
    `harmonium.estimate_beta`. Hidden units that are independent given the visible ones are summed out, so that of the
    samples of an RBM only the visible units count.

    ``data`` are rows as `harmonium.log_likelihood` takes them; ``samples`` a configuration, rows first.

    **Returns** arrays under the names that ``model.parameters()`` gives them, in nats per unit of a parameter; of a
    symmetric coupling both places of a pair hold the derivative in the parameter that they share. **Raises** as
    `harmonium.exact_gradient`; `SettingError` for samples of another shape and `DataError` for values that the units do
    not take.

    >>> from harmonium.energy.boltzmann import BoltzmannMachine
    >>> pair = BoltzmannMachine.from_arrays(np.zeros((2, 2)), np.zeros(2))
    >>> every_state = (np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]),)
    >>> gradient_from_samples(pair, [[1, 1], [1, 0]], every_state)["coupling"].tolist()
    [[0.0, 0.25], [0.25, 0.0]]
    """
    check_model(model)
    check_undirected(model, "a gradient")
    check_two_valued(model, "a gradient from samples")
    rows = visible_rows(model, data)
    edges = np.cumsum([units.size for units in model.units])[:-1]
    drawn = tuple(np.split(rows_of(model, samples), edges, axis=1))
    return real_parameters(_slopes(as_double(model), rows.astype(np.float64), drawn))


@in_double_precision
def _slopes(model: AbstractEnergyModel, rows: np.ndarray, drawn: Layers) -> AbstractEnergyModel:
    return jax.tree.map(np.asarray, _slopes_program()(model, rows, drawn))


@cache
def _slopes_program():
    return compile_function(jax.grad(_difference))


def _difference(model: AbstractEnergyModel, rows: Array, drawn: Configuration) -> Float[Array, ""]:
    """A difference whose gradient is that of the log-likelihood, the samples standing for the model's own mean."""
    return jnp.mean(model.chain_energy(drawn)) - jnp.mean(model.free_energy(rows))
