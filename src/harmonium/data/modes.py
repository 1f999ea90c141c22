"""Generators with several modes of known weight: what a sampler that does not mix gets wrong."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from harmonium.data.base import DataSet
from harmonium.data.noise import host_noise, words
from harmonium.errors import SettingError

_SIDE = 28
_WEIGHTS = np.array([0.3314, 0.2262, 0.0812, 0.0254, 0.3358])
_FLIPS = np.array([0.0001, 0.0137, 0.0215, 0.0223, 0.0544])
_CENTRES_SEED = 238904
_TEST_ROWS = 10_000
_OTHER_ROWS = 1000

MOST_CLUSTERS = 16
"""Hidden codes of a planted machine are enumerated: 2^clusters of them."""


def artificial_modes(rows: int = 10_000) -> DataSet:
    r"""Five noisy copies of random pictures of 28 x 28, of very different weight and noise.

    Mode ``k`` has weight :math:`w_k` and a centre :math:`m_k`; a row is its mode's centre with every pixel flipped with
    probability :math:`p_k`. The entropy, :math:`H(w) + 784 \sum_k w_k h(p_k)` = 78.826 nats, is exact: modes lie some
    380 flips apart, so that every row says which mode it is of. ``labels`` are these modes.

    ``train`` and ``valid`` hold ``rows`` and 1000 rows; training is meant to be from `DataSet.stream`. ``test`` holds
    the 10 000 pictures that follow the centres in the random stream of the paper's program, on which the best model has
    a mean log-likelihood of -79.398: the log-probability of a row varies by 70 nats, so that means are best compared
    row by row (`DataSet.log_probability`). Shapes: (rows, 784), uint8 0/1.

    **Raises** SettingError for less than one row.

    Source: Desjardins, Luo, Courville and Bengio, Deep Tempering (2014), "Artificial Modes"; its numbers are those of
    the authors' program.

    **Example**

    >>> data = artificial_modes(rows=10)
    >>> data.train.shape, round(data.entropy, 3)
    ((10, 784), 78.826)
    """
    _whole("artificial-modes", "rows", rows, 1, 10_000_000)
    stream = np.random.RandomState(_CENTRES_SEED)
    centres = stream.randint(0, 2, size=(len(_WEIGHTS), _SIDE**2)).astype(np.uint8)
    mixture = Mixture(_WEIGHTS, centres, np.broadcast_to(_FLIPS[:, None], centres.shape))
    test, of_test = np.empty((_TEST_ROWS, _SIDE**2), np.uint8), np.empty(_TEST_ROWS, np.int64)
    for row in range(_TEST_ROWS):
        mode = of_test[row] = int(np.argmax(stream.multinomial(1, _WEIGHTS)))
        test[row] = centres[mode] ^ stream.binomial(1, _FLIPS[mode], _SIDE**2).astype(np.uint8)
    noise = host_noise(0, "rows")
    (train, of_train), (valid, of_valid) = (mixture.labelled(noise, n) for n in (rows, _OTHER_ROWS))
    name = f"artificial-modes:rows={rows}"
    return DataSet(
        name,
        train,
        valid,
        test,
        shape=(_SIDE, _SIDE),
        labels={"train": of_train, "valid": of_valid, "test": of_test},
        source={"name": name},
        entropy=mixture.entropy_of_separate_modes(),
        draw=mixture.draw,
        density=mixture.log_probability,
    )


def planted(
    clusters: int = 8, visible: int = 64, strength: float = 3.0, seed: int = 0, rows: int = 10_000
) -> DataSet:
    """Rows drawn exactly from a restricted Boltzmann machine with planted clusters; see `planted_machine`.

    ``labels`` are the clusters (-1 for the few rows drawn from any other hidden code), ``train`` has ``rows`` rows, and
    ``valid`` and ``test`` 1000 each. Shapes: (rows, visible), uint8 0/1.

    **Raises** SettingError for settings that plant nothing.

    **Example**

    >>> planted(clusters=4, visible=40, rows=20).train.shape
    (20, 40)
    """
    _whole("planted", "rows", rows, 1, 10_000_000)
    machine = planted_machine(clusters, visible, strength, seed)
    noise = host_noise(seed, "rows")
    train, valid, test = (machine.labelled(noise, n) for n in (rows, _OTHER_ROWS, _OTHER_ROWS))
    name = f"planted:clusters={clusters},visible={visible},strength={strength:g},seed={seed},rows={rows}"
    return DataSet(
        name,
        train[0],
        valid[0],
        test[0],
        labels={"train": train[1], "valid": valid[1], "test": test[1]},
        source={"name": name},
        draw=lambda noise, n: machine.labelled(noise, n)[0],
        density=machine.log_probability,
    )


class Mixture(NamedTuple):
    """Modes of some weight, each a centre of 0/1 values that are flipped independently."""

    weights: np.ndarray
    centres: np.ndarray
    flips: np.ndarray

    def entropy_of_separate_modes(self) -> float:
        """Entropy in nats where every row says which mode it is of."""
        own = -(self.flips * np.log(self.flips) + (1 - self.flips) * np.log1p(-self.flips)).sum(axis=1)
        return float(-(self.weights * np.log(self.weights)).sum() + self.weights @ own)

    def log_probability(self, rows: np.ndarray) -> np.ndarray:
        """Log-probability of rows, in nats."""
        apart = np.asarray(rows, np.float64)[:, None] != self.centres
        terms = np.where(apart, np.log(self.flips), np.log1p(-self.flips)).sum(axis=2)
        return np.logaddexp.reduce(terms + np.log(self.weights), axis=1)

    def labelled(self, noise: np.random.Philox, n: int) -> tuple[np.ndarray, np.ndarray]:
        """``n`` rows and their modes."""
        modes = np.minimum(
            np.searchsorted(np.cumsum(self.weights), _uniform(noise, n)), len(self.weights) - 1
        )
        flipped = _uniform(noise, n * self.centres.shape[1]).reshape(n, -1) < self.flips[modes]
        return self.centres[modes] ^ flipped.astype(np.uint8), modes

    def draw(self, noise: np.random.Philox, n: int) -> np.ndarray:
        """``n`` rows."""
        return self.labelled(noise, n)[0]


class PlantedMachine(NamedTuple):
    """Arrays of a restricted Boltzmann machine with planted clusters, and what is known of it exactly.

    - ``weights`` (visible x hidden), ``visible_bias``, ``hidden_bias``: pass them to ``hm.RBM.from_arrays``.
    - ``centres``: most probable row of each cluster, 0/1, shape (clusters, visible).
    - ``mode_weights``: probability of each cluster's hidden code, by enumeration; they add up to 1 but for
      ``elsewhere``, the probability of all other codes.
    - ``log_partition``: the exact log Z, in nats.
    """

    weights: np.ndarray
    visible_bias: np.ndarray
    hidden_bias: np.ndarray
    centres: np.ndarray
    mode_weights: np.ndarray
    elsewhere: float
    log_partition: float

    def cluster(self, rows: np.ndarray) -> np.ndarray:
        """Which centre each row is nearest to."""
        return np.argmin((np.asarray(rows)[:, None] != self.centres).sum(axis=2), axis=1)

    def log_probability(self, rows: np.ndarray) -> np.ndarray:
        """Log-probability of rows, in nats."""
        rows = np.asarray(rows, np.float64)
        inputs = rows @ self.weights + self.hidden_bias
        return rows @ self.visible_bias + np.logaddexp(0, inputs).sum(axis=1) - self.log_partition

    def labelled(self, noise: np.random.Philox, n: int) -> tuple[np.ndarray, np.ndarray]:
        """``n`` exact rows and the clusters of the hidden codes they were drawn from, -1 for other codes."""
        codes, log_weight = _codes(self.weights, self.visible_bias, self.hidden_bias)
        reached = np.cumsum(np.exp(log_weight - self.log_partition))
        drawn = codes[np.minimum(np.searchsorted(reached, _uniform(noise, n)), len(codes) - 1)]
        mean = 1 / (1 + np.exp(-(drawn @ self.weights.T + self.visible_bias)))
        rows = _uniform(noise, mean.size).reshape(mean.shape) < mean
        return rows.astype(np.uint8), np.where(drawn.sum(axis=1) == 1, np.argmax(drawn, axis=1), -1)


def planted_machine(
    clusters: int = 8, visible: int = 64, strength: float = 3.0, seed: int = 0
) -> PlantedMachine:
    r"""A machine each of whose hidden units, on alone, makes one cluster around a random centre.

    With :math:`\xi_j \in \{-1, 1\}^n` the centres, :math:`W_{ij} = s\, \xi_{ij}` and no visible bias, the code with
    unit ``j`` on alone has the log-weight :math:`c_j + \sum_i \log(1 + e^{W_{ij}})`. The hidden biases make the weight
    of cluster ``j`` proportional to ``j`` (from 1) and lie half-way between those at which no unit, and two units,
    would be on. All codes are enumerated, so that the weights of the modes are exact; block Gibbs sampling never
    crosses between the clusters of a strong machine, while rows say which they are of.

    **Raises** SettingError for less than 2 or more than 16 clusters, less than 8 visible units or a strength that is
    not positive.

    **Example**

    >>> machine = planted_machine(clusters=4, visible=40)
    >>> machine.mode_weights.round(3).tolist()
    [0.1, 0.2, 0.3, 0.4]
    """
    _whole("planted", "clusters", clusters, 2, MOST_CLUSTERS)
    _whole("planted", "visible", visible, 8, 100_000)
    _whole("planted", "seed", seed, 0, 2**63 - 1)
    if isinstance(strength, bool) or not isinstance(strength, int | float) or not 0 < strength < math.inf:
        raise SettingError(f"planted needs a positive strength, got {strength!r}; pass e.g. 3.0")
    bits = words(host_noise(seed, "centres"), clusters * visible) >> np.uint32(31)
    centres = bits.reshape(clusters, visible).astype(np.uint8)
    weights = strength * (2.0 * centres.T - 1.0)
    alone = np.logaddexp(0, weights).sum(axis=0)
    together = np.logaddexp(0, weights[:, :, None] + weights[:, None, :]).sum(axis=0)
    excess = (together - alone[:, None] - alone[None, :])[~np.eye(clusters, dtype=bool)].max()
    level = (visible * math.log(2) - excess) / 2
    hidden_bias = level + np.log(np.arange(1, clusters + 1) / clusters) - alone
    _, log_weight = _codes(weights, np.zeros(visible), hidden_bias)
    log_partition = float(np.logaddexp.reduce(log_weight))
    of_modes = np.exp(log_weight[1 << np.arange(clusters)] - log_partition)
    return PlantedMachine(
        weights=weights,
        visible_bias=np.zeros(visible),
        hidden_bias=hidden_bias,
        centres=centres,
        mode_weights=of_modes,
        elsewhere=float(1 - of_modes.sum()),
        log_partition=log_partition,
    )


def _codes(
    weights: np.ndarray, visible_bias: np.ndarray, hidden_bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Every hidden code, unit ``j`` at bit ``j`` of its number, and its log-weight, visible units summed out."""
    count = len(hidden_bias)
    codes = (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(np.float64)
    log_weight = np.concatenate(
        [
            part @ hidden_bias + np.logaddexp(0, part @ weights.T + visible_bias).sum(axis=1)
            for part in np.array_split(codes, max(1, len(codes) // 1024))
        ]
    )
    return codes, log_weight


def _uniform(noise: np.random.Philox, count: int) -> np.ndarray:
    """Numbers strictly between 0 and 1, to 2^-33."""
    return (words(noise, count) + 0.5) * 2.0**-32


def _whole(name: str, parameter: str, value: int, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise SettingError(
            f"{name} needs {parameter} to be a whole number from {least} to {most}, got {value!r}"
        )
