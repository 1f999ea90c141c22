"""The four stages that make a classifier of a deep Boltzmann machine, and what is left when one is skipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from harmonium.data.base import DataSet
from harmonium.energy.dbm import DBM
from harmonium.energy.doubling import levels_of, merged
from harmonium.energy.independent import field_of_marginals
from harmonium.energy.rbm import RBM
from harmonium.evaluate.classify import Classification, classify
from harmonium.rules.base import AbstractRule
from harmonium.rules.contrastive import CD, PCD
from harmonium.train.finetune import fine_tune
from harmonium.train.fit import fit
from harmonium.train.levels import passed_up
from harmonium.train.unrolled import Unrolled
from harmonium.units.bernoulli import Bernoulli
from harmonium.units.categorical import Categorical
from harmonium.units.pair import BernoulliPair

CLASSES = 10

STAGES: Mapping[str, str] = MappingProxyType(
    {
        "a": "RBM by CD-1 on v",
        "b": "RBM by CD-k with growing k on (h1, y)",
        "c": "joint DBM by SML with k = 5 on (v, y)",
        "d": "MLP of the unrolled DBM, fine-tuned with dropout",
    }
)
"""The panels of the chapter's figure."""

SKIPPED: Mapping[str, str] = MappingProxyType(
    {
        "": "all four stages",
        "a": "without the first RBM",
        "b": "without the second RBM",
        "c": "without joint training",
        "d": "without fine-tuning",
        "abc": "the same MLP from a random start",
    }
)
"""The stages that are left out, and how that is called."""


class Recipe(NamedTuple):
    """Settings of all four stages.

    Rates of (a) and (b) are those of doubled parameters (`harmonium.energy.doubling`). In (b) CD-k grows from 1 to
    ``most_steps``.
    """

    hidden: tuple[int, int]
    batch_size: int
    first_epochs: int
    first_rate: float
    second_epochs: int
    second_rate: float
    most_steps: int
    joint_epochs: int
    joint_rate: float
    tuning_epochs: int
    tuning_rate: float
    visible_dropout: float
    hidden_dropout: float
    momentum: float = 0.5
    weight_decay: float = 2e-4
    joint_steps: int = 5
    chains: int = 100
    sweeps: int = 10


class Outcome(NamedTuple):
    """Fractions of rows that are classified wrongly: after each stage, and at the end without some of the stages."""

    stages: Mapping[str, float]
    without: Mapping[str, float]


def run_recipe(
    recipe: Recipe, data: DataSet, seed: int, progress: Callable[[str], None], split: str = "test"
) -> Outcome:
    """All stages, and the end without some of them, of one seed; errors are of the rows of ``split``.

    A stage that is skipped leaves its part of the machine as it was: at Glorot's random weights, with biases zero but
    for those of the visible units at the marginals. Everything else is the same: sizes, epochs, dropout, order of rows.
    """
    start = random_machine(recipe, data, seed)
    first = first_stage(recipe, data, seed)
    second = second_stage(recipe, first, data, seed)
    pretrained = with_labels(first, second)
    joint = joint_stage(recipe, pretrained, data, seed)
    progress(f"seed {seed}: the machine is trained; now without its first and its second RBM")
    lower, upper = split_at_first(start)
    machines = {
        "": joint,
        "a": joint_stage(recipe, with_labels(lower, second_stage(recipe, lower, data, seed)), data, seed),
        "b": joint_stage(recipe, with_labels(first, upper), data, seed),
        "c": pretrained,
        "abc": start,
    }
    without = {}
    for left_out, machine in machines.items():
        network = fourth_stage(recipe, machine, data, seed)
        without[left_out] = _known_error(network.classify(data, split=split))
        progress(f"seed {seed}: {SKIPPED[left_out]}: {100 * without[left_out]:.2f} %")
    without["d"] = _known_error(classify(joint, data, "mean-field", split=split))
    stages = {
        "a": readout_error(first, data, split),
        "b": _known_error(classify(single(second), codes(first, data), "free-energy", split=split)),
        "c": without["d"],
        "d": without[""],
    }
    return Outcome(stages, without)


def first_stage(recipe: Recipe, data: DataSet, seed: int) -> RBM:
    """(a): the first level of a DBM, whose hidden units hear the rows twice."""
    rbm = RBM(BernoulliPair(data.width), recipe.hidden[0], seed=seed)
    rule = CD(centred=False)
    return _trained(recipe, rbm, data, rule, recipe.first_epochs, recipe.first_rate, seed)


def second_stage(recipe: Recipe, below: RBM, data: DataSet, seed: int) -> DBM:
    """(b): the second level with its labels, on codes of the first; its hidden units are pairs, see `with_labels`."""
    machine = DBM(recipe.hidden[0], [BernoulliPair(recipe.hidden[1])], labels=CLASSES, seed=seed)
    rule = CD(final_steps=recipe.most_steps, centred=False)
    return _trained(recipe, machine, codes(below, data), rule, recipe.second_epochs, recipe.second_rate, seed)


def joint_stage(recipe: Recipe, machine: DBM, data: DataSet, seed: int) -> DBM:
    """(c): all layers together, with mean field where rows and labels are given and chains of all layers where not."""
    rule = PCD(
        steps=recipe.joint_steps,
        chains=recipe.chains,
        inference="mean-field",
        inference_sweeps=recipe.sweeps,
        centred=False,
    )
    return _trained(
        recipe, machine, data, rule, recipe.joint_epochs, recipe.joint_rate, seed, initialize=False
    )


def _trained(
    recipe: Recipe,
    machine: Any,
    data: DataSet,
    rule: AbstractRule,
    epochs: int,
    rate: float,
    seed: int,
    initialize: bool = True,
) -> Any:
    """The machine after one of the first three stages, which differ in their rule, length and rate."""
    return fit(
        machine,
        data,
        rule,
        epochs=epochs,
        learning_rate=rate,
        batch_size=recipe.batch_size,
        momentum=recipe.momentum,
        weight_decay=recipe.weight_decay,
        initialize=initialize,
        seed=seed,
    ).model


def fourth_stage(recipe: Recipe, machine: DBM, data: DataSet, seed: int) -> Unrolled:
    """(d): the machine unrolled and fine-tuned."""
    return fine_tune(
        Unrolled.of(machine),
        data,
        epochs=recipe.tuning_epochs,
        learning_rate=recipe.tuning_rate,
        batch_size=recipe.batch_size,
        visible_dropout=recipe.visible_dropout,
        hidden_dropout=recipe.hidden_dropout,
        seed=seed,
    ).model


def codes(below: RBM, data: DataSet) -> DataSet:
    """What the second RBM learns from: probabilities of the first one's hidden units, of which bits are drawn."""
    return replace(passed_up(below, data, 0), labels=data.labels)


def with_labels(below: RBM, above: DBM) -> DBM:
    """The machine of both levels: `harmonium.energy.doubling.merged`, and the labels with half of what they had.

    Every parameter is halved, and the two biases of the first hidden layer are added up.
    """
    given = above.parameters()
    machine = merged([below, RBM(*above.units[:2], weights=given["weights"][0])]).parameters()
    return DBM.from_arrays(
        [*machine["weights"], given["weights"][1] / 2],
        [*machine["biases"], given["biases"][2] / 2],
        [*("bernoulli",) * 3, above.units[2].kind],
    )


def split_at_first(machine: DBM) -> tuple[RBM, DBM]:
    """The two levels of a machine with labels, the inverse of `with_labels`."""
    given = machine.parameters()
    lower, upper = levels_of(DBM.from_arrays(given["weights"][:2], given["biases"][:3]))
    twice = upper.parameters()
    labelled = DBM.from_arrays(
        [twice["weights"], 2 * given["weights"][2]],
        [twice["visible_bias"], twice["hidden_bias"], 2 * given["biases"][3]],
        [*(units.kind for units in upper.units), machine.units[3].kind],
    )
    return lower, labelled


def single(second: DBM) -> DBM:
    """The second level with single hidden units: its free energies are half of those with pairs."""
    given = second.parameters()
    return DBM.from_arrays(
        [matrix / 2 for matrix in given["weights"]],
        [bias / 2 for bias in given["biases"]],
        ["bernoulli", "bernoulli", second.units[2].kind],
    )


def random_machine(recipe: Recipe, data: DataSet, seed: int) -> DBM:
    """What nothing has been learned by: normal weights of variance 2 over the units of both layers."""
    sizes = [data.width, *recipe.hidden, CLASSES]
    draws = np.random.RandomState(np.random.MT19937(np.random.SeedSequence([seed, 0x6107])))
    weights = [
        (draws.standard_normal((lower, upper)) * np.sqrt(2 / (lower + upper))).astype(np.float32)
        for lower, upper in pairwise(sizes)
    ]
    biases = [np.zeros(size, np.float32) for size in sizes]
    biases[0] = field_of_marginals(Bernoulli(data.width), data.train.mean(axis=0), len(data.train)).astype(
        np.float32
    )
    return DBM.from_arrays(weights, biases, ["bernoulli"] * 3 + [Categorical(CLASSES).kind])


def readout_error(rbm: RBM, data: DataSet, split: str) -> float:
    """The error of a logistic regression, of scikit-learn's settings, on the hidden means of the first RBM."""
    found = codes(rbm, data)
    assert found.labels is not None
    readout = LogisticRegression(max_iter=2000).fit(found.train, found.labels["train"])
    return float(np.mean(readout.predict(found.split(split)) != found.labels[split]))


def _known_error(found: Classification) -> float:
    assert found.error is not None
    return found.error
