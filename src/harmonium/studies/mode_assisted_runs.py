"""The runs of the study of mode-assisted training: ensembles of small nets with exact scores, and nets of digits."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from harmonium.data.base import DataSet
from harmonium.data.load import load_data
from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.dbm import DBM
from harmonium.energy.ensemble import Ensemble
from harmonium.energy.rbm import RBM
from harmonium.errors import HarmoniumWarning
from harmonium.evaluate.ais import AIS
from harmonium.evaluate.ensemble import exact_log_partitions, unnormalised_log_probabilities
from harmonium.evaluate.estimate import Estimate
from harmonium.evaluate.likelihood import log_likelihood
from harmonium.evaluate.variational import mean_field_bound
from harmonium.numerics.precision import as_single
from harmonium.rules.base import AbstractRule
from harmonium.studies.mode_assisted_plan import Case, Digits, Net
from harmonium.train.config import TrainConfig
from harmonium.train.drive import run_chunk
from harmonium.train.ensemble import member_seed
from harmonium.train.fit import fit
from harmonium.train.setup import prepare

TINY = 0.01
"""Standard deviation of first weights and biases."""

_SHORT = 1000
"""Temperatures with which the best of several runs is chosen."""


class Scores(NamedTuple):
    """An ensemble as it ended, in nats per row.

    - ``last``: the exact log-likelihood of every member, ``best`` the highest of it at any point of the run.
    - ``bound``: the mean-field bound that training works on; equal to ``last`` for an RBM.
    - ``ideal``: the highest that there is, minus the entropy of the data.
    """

    case: Case
    last: Float[np.ndarray, " members"]
    best: Float[np.ndarray, " members"]
    bound: Float[np.ndarray, " members"]
    ideal: float

    @property
    def divergence(self) -> Float[np.ndarray, " members"]:
        """Kullback-Leibler divergence of the data from every member; infinite for one that came apart."""
        return np.where(np.isfinite(self.last), self.ideal - self.last, np.inf)


def first_net(net: Net, seed: int) -> RBM | DBM:
    """A net whose weights and biases are all normal with standard deviation `TINY`."""
    generator = np.random.default_rng(seed)
    sizes = (net.visible, *net.hidden)
    weights = [(TINY * generator.standard_normal(shape)).astype(np.float32) for shape in pairwise(sizes)]
    biases = [(TINY * generator.standard_normal(size)).astype(np.float32) for size in sizes]
    return RBM.from_arrays(weights[0], *biases) if len(net.hidden) == 1 else DBM.from_arrays(weights, biases)


def bars(visible: int) -> DataSet:
    """All shifts of a bar of half the length of its ring."""
    return load_data(f"shifting-bars:length={visible},bar={visible // 2}")


def train_case(case: Case, seed: int) -> Scores:
    """Train an ensemble on full batches and score all its members exactly; nothing stops one that comes apart."""
    data, length = bars(case.net.visible), case.length
    assert data.entropy is not None
    settings = TrainConfig(
        updates=length.updates,
        batch_size=case.net.visible,
        learning_rate=1.0,
        final_rate=length.last_rate,
        members=length.members,
        seed=seed,
        initialize=False,
    )
    nets = [first_net(case.net, member_seed(seed, member)) for member in range(length.members)]
    setup = prepare(Ensemble.of(nets), data, case.rule, settings, "sgd")
    state, chunk, index = setup.state, -(-length.updates // length.points), 0
    best = last = np.full(length.members, -np.inf)
    while index < length.updates:
        # One length for all calls: the last one reads past the horizon's row numbers, of which it takes none.
        rows = setup.order.rows(index, chunk)
        state = run_chunk(setup.trainer, state, setup.feed, *rows, min(chunk, length.updates - index))
        index += chunk
        last = scores_of(as_single(state.model), data)
        best = np.fmax(best, last)
    return Scores(case, last, best, bounds_of(as_single(state.model), data, last), -data.entropy)


def scores_of(stacked: Any, data: DataSet) -> Float[np.ndarray, " members"]:
    """The exact mean log-likelihood of the rows under every member."""
    return unnormalised_log_probabilities(stacked, data.train).mean(axis=1) - exact_log_partitions(stacked)


def bounds_of(
    stacked: Any, data: DataSet, exact: Float[np.ndarray, " members"]
) -> Float[np.ndarray, " members"]:
    """The mean-field bound of the rows under every member, with exact log partition functions."""
    ensemble = Ensemble(stacked)
    if not isinstance(stacked, DBM):
        return exact
    rows = unnormalised_log_probabilities(stacked, data.train).mean(axis=1)
    gaps = [
        rows[number] - float(np.mean(mean_field_bound(member, data.train).value))
        for number, member in enumerate(ensemble)
        if isinstance(member, DBM)
    ]
    return exact - np.array(gaps)


class DigitScore(NamedTuple):
    """The best of several runs on digits; ``exact`` where log Z can be had, in nats per test row."""

    data: str
    net: Net
    label: str
    estimate: Estimate
    exact: Estimate | None
    runs: int


def train_digits(
    name: str, data: DataSet, net: Net, label: str, rule: AbstractRule, plan: Digits, seed: int
) -> DigitScore:
    """Train several nets as figure 4 has it, choose the best by a short walk, and score it by the paper's."""
    nets = [first_net(net, member_seed(seed, member)) for member in range(plan.runs)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HarmoniumWarning)
        run = fit(
            Ensemble.of(nets),
            data,
            rule,
            epochs=plan.epochs,
            learning_rate=0.05,
            final_rate=0.0005,
            seed=seed,
            initialize=False,
        )
        assert isinstance(run.model, Ensemble)
        members = [run.model.member(number) for number in run.model.sound or range(len(run.model))]
        chains = AIS(chains=plan.chains, temperatures=min(_SHORT, plan.temperatures), base="uniform")
        valid = data.valid if data.valid is not None else data.train
        found = [float(np.mean(log_likelihood(member, valid, chains, seed).value)) for member in members]
        best = members[int(np.nanargmax(found))]
        walk = AIS(chains=plan.chains, temperatures=plan.temperatures, base="uniform")
        estimate = log_likelihood(best, data, walk, seed)
        exact = log_likelihood(best, data, "exact", seed) if can_sum(best) else None
    return DigitScore(name, net, label, estimate, exact, len(members))


def can_sum(model: AbstractEnergyModel) -> bool:
    """Whether log Z is a sum over few enough states."""
    return model.split(held=False).bits <= 24
