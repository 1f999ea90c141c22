"""The feed-forward network that a deep Boltzmann machine with labels unrolls to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, SupportsIndex

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from harmonium.energy.dbm import DBM
from harmonium.energy.labels import check_labels
from harmonium.energy.parameters import as_parameter
from harmonium.errors import SettingError
from harmonium.evaluate.classify import Classification, classified, known_labels
from harmonium.evaluate.estimate import Kind
from harmonium.evaluate.likelihood import as_data, visible_rows
from harmonium.inference.mean_field import MeanField
from harmonium.numerics.compile import compile_function
from harmonium.numerics.precision import as_single
from harmonium.numerics.random import Noise, uniform
from harmonium.typing import Batch, Configuration

FEATURE_SWEEPS = 10
"""Mean-field sweeps that the features are taken from."""

_BLOCK = 4096

Net = tuple[tuple[Array, ...], tuple[Array, ...], tuple[Array, ...]]
"""What fine-tuning moves: weights, feedback and biases."""


class Unrolled(eqx.Module):
    r"""A classifier: one mean-field pass upwards of a deep Boltzmann machine whose label layer became the output.

    .. math:: h_1 = \sigma(b_1 + v^\top W_1 + q_2^\top F_1), \qquad h_2 = \sigma(b_2 + h_1^\top W_2), \qquad
        p(y \mid v) = \mathrm{softmax}(b_y + h_2^\top W_y)

    Its inputs are the rows :math:`v` and their *features*, the means :math:`q_2` of the second hidden layer (of deeper
    machines every layer but the first) at the mean-field fixed point without the label. Built by :meth:`of`, it has the
    parameters of the machine, :math:`F_1 = W_2^\top`, so that before any fine-tuning it *is* one pass of mean field at
    the features. `fine_tune` moves weights, feedback :math:`F` and biases; ``machine``, which the features come from,
    stays as it is and is part of the classifier. A machine of one hidden layer has no features.

    Source: the chapter's figure of the deep Boltzmann machine as a classifier, panel d.

    >>> network = Unrolled.of(DBM(6, [4, 3], labels=2, seed=0))
    >>> network.classify(np.eye(6)).probability.shape
    (6, 2)
    """

    machine: DBM
    weights: tuple[Float[Array | np.ndarray, "_ _"], ...]
    feedback: tuple[Float[Array | np.ndarray, "_ _"], ...]
    biases: tuple[Float[Array | np.ndarray, " _"], ...]
    sweeps: int = eqx.field(static=True, default=FEATURE_SWEEPS)

    @classmethod
    def of(cls, model: DBM, sweeps: SupportsIndex = FEATURE_SWEEPS) -> Unrolled:
        """The network of a machine with a label layer; ``sweeps`` are those of mean field that features are taken from.

        Raises `SettingError` for a machine without a label layer.
        """
        if not isinstance(model, DBM):
            raise SettingError(
                f"only a DBM is unrolled, got {type(model).__name__}; pass one such as hm.DBM(64, [32, 16], labels=10)"
            )
        check_labels(model, "unrolling")
        given = model.parameters()
        weights, biases = given["weights"], given["biases"]
        return cls.from_arrays(
            weights,
            [matrix.T for matrix in weights[1:-1]],
            biases[1:],
            weights[:-1],
            biases[:-1],
            kinds=[units.kind for units in model.units[:-1]],
            sweeps=sweeps,
        )

    @classmethod
    def from_arrays(
        cls,
        weights: Sequence[ArrayLike],
        feedback: Sequence[ArrayLike],
        biases: Sequence[ArrayLike],
        machine_weights: Sequence[ArrayLike],
        machine_biases: Sequence[ArrayLike],
        kinds: Sequence[str] | None = None,
        sweeps: SupportsIndex = FEATURE_SWEEPS,
    ) -> Unrolled:
        """A network with given parameters: ``weights`` lower by upper layer with those of the labels last, ``feedback``
        from every layer's features to the layer below it, and the parameters of the machine without its label layer.

        Raises `SettingError` for numbers of arrays or shapes that do not go together.
        """
        machine = DBM.from_arrays(machine_weights, machine_biases, kinds)
        sizes = [units.size for units in machine.units]
        matrices = tuple(as_parameter(matrix, f"weights[{i}]", 2) for i, matrix in enumerate(weights))
        back = tuple(as_parameter(matrix, f"feedback[{i}]", 2) for i, matrix in enumerate(feedback))
        vectors = tuple(as_parameter(vector, f"biases[{i}]", 1) for i, vector in enumerate(biases))
        layers = [*sizes, matrices[-1].shape[1] if matrices else 0]
        wanted = [
            list(pairwise(layers)),
            list(zip(sizes[2:], sizes[1:-1], strict=True)),
            [(size,) for size in layers[1:]],
        ]
        for name, arrays, shapes in zip(
            ("weights", "feedback", "biases"), (matrices, back, vectors), wanted, strict=True
        ):
            found = [array.shape for array in arrays]
            if found != shapes:
                raise SettingError(
                    f"{name} of this network have shapes {found}; the layers {sizes} of its machine need {shapes}"
                )
        checked = MeanField(sweeps=sweeps)  # pyright: ignore[reportArgumentType]
        return cls(machine, matrices, back, vectors, checked.sweeps)

    def parameters(self) -> dict[str, Any]:
        """The arguments of :meth:`from_arrays`."""
        below = self.machine.parameters()
        return {
            "weights": [np.asarray(matrix) for matrix in self.weights],
            "feedback": [np.asarray(matrix) for matrix in self.feedback],
            "biases": [np.asarray(vector) for vector in self.biases],
            "machine_weights": below["weights"],
            "machine_biases": below["biases"],
            "kinds": [units.kind for units in self.machine.units],
            "sweeps": self.sweeps,
        }

    @property
    def net(self) -> Net:
        """What fine-tuning moves."""
        return self.weights, self.feedback, self.biases  # pyright: ignore[reportReturnType]

    def with_net(self, net: Net) -> Unrolled:
        """The same network with other weights, feedback and biases."""
        return Unrolled(self.machine, *net, self.sweeps)

    def features(self, rows: Float[Array | np.ndarray, "rows visible"]) -> Configuration:
        """Mean-field means of every hidden layer but the first given rows, without the label."""
        means = MeanField(sweeps=self.sweeps).solve(self.machine, Batch(jnp.asarray(rows))).means
        return means[2:]

    def logits(self, data: Any, split: str | None = None) -> Float[np.ndarray, "rows classes"]:
        """Logarithms of the classes' probabilities, up to a number of each row, in single precision.

        ``data`` are rows, or what `harmonium.load_data` takes, of which those of ``split`` count (without one: test,
        else train). Raises as `harmonium.log_likelihood` for rows that do not fit.
        """
        rows = visible_rows(self.machine, data, split)
        network = as_single(self)
        blocks = [rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK)]
        found = [np.asarray(_logits_program()(network, np.asarray(block, np.float32))) for block in blocks]
        return np.concatenate(found)

    def classify(
        self,
        data: Any,
        *,
        split: str | None = None,
        classes: Sequence[int | str] | None = None,
    ) -> Classification:
        """The class of every row, as `harmonium.classify` has it of a machine; arguments are those of both.

        ``probability`` is the softmax of :meth:`logits`, ``method`` is "unrolled" and ``kind`` a proxy.
        """
        given = as_data(data)
        names, truth = known_labels(given, split, classes, len(self.biases[-1]))
        scores = self.logits(given, split).astype(np.float64)
        return classified(scores, names, truth, method="unrolled", kind=Kind.PROXY)


def pass_upwards(
    machine: DBM,
    net: Net,
    rows: Float[Array, "rows visible"],
    features: Configuration,
    noise: Noise | None = None,
    dropout: tuple[float, float] = (0.0, 0.0),
) -> Float[Array, "rows classes"]:
    """Logits of one pass of the network.

    With ``noise``, visible units are dropped with the first probability of ``dropout``, features and hidden units with
    the second, and what is left is divided by the probability of being left.
    """
    weights, feedback, biases = net
    dropped = _Dropper(noise, dropout, rows.shape[0], _droppable(machine))
    below = dropped(rows)
    above = [dropped(means) for means in features]
    for index, bias in enumerate(biases[:-1]):
        field = bias + below @ weights[index]
        if index < len(above):
            field = field + above[index] @ feedback[index]
        below = dropped(machine.units[index + 1].mean(field))
    return biases[-1] + below @ weights[-1]


def _droppable(machine: DBM) -> int:
    """Units of a row that may be dropped: visible ones, features and hidden ones."""
    sizes = [units.size for units in machine.units]
    return sum(sizes) + sum(sizes[2:])


class _Dropper:
    """Drops units of one array after the other, the visible ones first, from one draw of random words for all."""

    def __init__(self, noise: Noise | None, rates: tuple[float, float], rows: int, units: int):
        self._rates, self._place = rates, 0
        self._words = None
        if noise is not None and any(rates):
            self._words = jnp.concatenate(noise.pair((rows, -(-units // 2))), axis=1)

    def __call__(self, values: Array) -> Array:
        start, self._place = self._place, self._place + values.shape[1]
        rate = self._rates[int(start > 0)]
        if self._words is None or not rate:
            return values
        kept = uniform(self._words[:, start : self._place]) >= rate
        return jnp.where(kept, values / (1 - rate), 0)


@cache
def _logits_program():
    def program(network: Unrolled, rows: Array) -> Array:
        return pass_upwards(network.machine, network.net, rows, network.features(rows))

    return compile_function(program)
