"""Mode-assisted training: its schedule, its coin, its balance at a perfect fit, and how well it trains."""

from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harmonium as hm
from harmonium.cli.config import merge
from harmonium.errors import SettingError
from harmonium.modes.base import AbstractModeSolver, Findings
from harmonium.modes.names import SETTINGS, SOLVERS
from harmonium.numerics.random import key_words, seed_key, update_words
from harmonium.rules.mode_assisted import ModeAssisted
from harmonium.rules.names import assisted, build_rule, describe_assistance, describe_rule
from harmonium.train.config import read_settings
from harmonium.train.rebuild import rule as rebuild_rule
from harmonium.typing import Batch, Step
from tests.train.runs import assert_same, interrupted, train

ASSISTED = hm.ModeAssisted(hm.CD(1, centred=False))
BARS = "shifting-bars:length=12"


def test_the_schedule_has_the_mean_of_the_paper() -> None:
    """Seven updates in a hundred, fewer than one in the first fifth; coins come up as often as it says."""
    chances = np.asarray(ASSISTED.probability_at(np.arange(5000), 5000))
    assert chances.mean() == pytest.approx(0.0700, abs=5e-5)
    assert chances[:1000].mean() < 0.01
    words = update_words(seed_key(0), jnp.arange(5000))
    coins = jax.vmap(lambda n, own: ASSISTED.coin(Step(n, jnp.int32(5000), own, own)))(
        jnp.arange(5000), words
    )
    stderr = np.sqrt((chances * (1 - chances)).sum())
    assert abs(float(np.sum(coins)) - chances.sum()) < 5 * stderr


class Given(AbstractModeSolver):
    """A solver that is told the state to find."""

    state: tuple[np.ndarray, ...]
    traceable: ClassVar[bool] = True

    def check(self, model: Any) -> None:
        """It searches nothing."""

    def search(self, words: Any, model: Any) -> Any:
        found = tuple(jnp.asarray(layer) for layer in self.state)
        return found, model.energy(found)

    def explore(self, words: Any, model: Any) -> Findings:
        raise NotImplementedError


def test_at_a_perfect_fit_modes_of_one_energy_push_nowhere_on_average() -> None:
    """Over the ground states, each of which is a row of the data; one that is no mode would push for ever."""
    patterns = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    with jax.enable_x64(True):
        model = jax.tree.map(
            jnp.asarray, hm.RBM.from_arrays(80 * patterns - 40, np.zeros(3) - 15, np.zeros(3) - 15)
        )
        states = np.array([[bits >> unit & 1 for unit in range(6)] for bits in range(64)], float)
        energy = np.asarray(model.energy((states[:, :3], states[:, 3:])))
        ground = states[energy < energy.min() + 1e-9]
        np.testing.assert_array_equal(ground[:, :3], ground[:, 3:])
        assert {tuple(row) for row in ground[:, :3]} == {tuple(row) for row in patterns}

        def slopes(state: np.ndarray) -> np.ndarray:
            solver = Given((state[:3], state[3:]))
            rule = hm.ModeAssisted(hm.CD(1, centred=False), solver, probability=1.0, offset=100.0)
            words = key_words(seed_key(0))
            step, batch = Step(jnp.int32(0), jnp.int32(1), words, words), Batch(x=jnp.asarray(patterns))
            state_of_rule = rule.init(words, model, batch)
            found, _ = jax.grad(rule.loss, has_aux=True)(model, step, state_of_rule, batch)
            return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(found)])

        each = np.stack([slopes(state) for state in ground])
        assert np.abs(each).max() > 0.1
        np.testing.assert_allclose(each.mean(axis=0), 0, atol=1e-6)
        assert np.abs(slopes(np.ones(6))).max() == 0  # above the middle: no push


def branches_of(jaxpr: Any) -> int:
    """How many searches of a program stand in a branch."""
    found = 0
    for equation in jaxpr.eqns:
        inner = []
        for value in jax.tree.leaves(
            list(equation.params.values()),
            is_leaf=lambda leaf: hasattr(leaf, "eqns") or hasattr(leaf, "jaxpr"),
        ):
            body = getattr(value, "jaxpr", value)
            if hasattr(body, "eqns"):
                inner.append(body)
        if equation.primitive.name == "cond" and any(_loops(body) for body in inner):
            found += 1
        found += sum(branches_of(body) for body in inner)
    return found


def _loops(jaxpr: Any) -> bool:
    return any(equation.primitive.name == "while" for equation in jaxpr.eqns)


def test_members_share_the_coin_and_the_search_stays_a_branch() -> None:
    """With a coin of the step there is a branch under the map over members; with one of each member there is none."""
    models = hm.Ensemble.of([hm.RBM(5, 3, seed=seed) for seed in range(3)]).stacked
    batch, words = Batch(x=jnp.ones((2, 5))), update_words(seed_key(1), jnp.arange(3))

    def one(model: Any, own: Any, shared: Any) -> Any:
        step = Step(jnp.int32(3), jnp.int32(9), shared, own)
        state = ASSISTED.init(own, model, batch)
        return jax.grad(ASSISTED.loss, has_aux=True)(model, step, state, batch)[0]

    def program(shared: Any, axis: int | None) -> Any:
        return jax.make_jaxpr(jax.vmap(one, (0, 0, axis)))(models, words, shared).jaxpr

    assert branches_of(program(words[0], None)) == 1
    assert branches_of(program(words, 0)) == 0


def test_members_of_a_run_take_their_modes_together() -> None:
    rule = hm.ModeAssisted(hm.PCD(chains=4), probability=0.5, steepness=0.0, offset=100.0)
    run = train(None, rule=rule, members=3, updates=100)
    assert run.state is not None
    taken = np.asarray(run.state.rule_state.taken)
    assert 30 < taken[0] < 70
    assert (taken == taken[0]).all()
    assert run.history[-1]["mode_share"] == taken[0] / 100
    assert run.history[-1]["mode_push"] > 0 > run.history[-1]["mode_energy"]


@pytest.mark.parametrize("settings", [{"push": 0.1, "solver": "descent"}, {"baseline_steps": 3}], ids=str)
def test_a_resumed_run_is_the_unbroken_one(settings: dict[str, Any], tmp_path: Path) -> None:
    """Also that its settings come back from the folder: solver, push, baseline."""
    rule = hm.ModeAssisted(hm.PCD(chains=16), **settings, offset=0.0)
    unbroken = train(tmp_path / "unbroken", rule=rule)
    interrupted(tmp_path / "broken", 200, rule=rule)
    resumed = hm.resume(tmp_path / "broken")
    assert_same(resumed, unbroken)
    assert resumed.config == unbroken.config
    assert resumed.config["mode_assisted"]["offset"] == 0.0
    assert unbroken.state is not None
    assert 0 < int(unbroken.state.rule_state.taken) < 450


def start(seed: int) -> hm.RBM:
    """Weights and biases normal with a deviation of 0.01, as the study pins them."""
    generator = np.random.default_rng(seed)
    weights, visible, hidden = (0.01 * generator.standard_normal(shape) for shape in ((12, 12), 12, 12))
    return hm.RBM.from_arrays(*(part.astype(np.float32) for part in (weights, visible, hidden)))


def test_modes_make_contrastive_divergence_converge() -> None:
    """The small form of the bar of mode-assisted training: 4000 updates of 12 by 12 units; at best -log 12 = -2.485."""
    members, medians = hm.Ensemble.of([start(seed) for seed in range(10)]), []
    for rule in (ASSISTED, hm.CD(1, centred=False)):
        run = hm.fit(members, BARS, rule, updates=4000, learning_rate=1.0, final_rate=0.001, seed=0)
        medians.append(run.history[-1]["log_likelihood_train"])
    assert -np.log(12) >= medians[0] >= -2.53
    assert medians[1] <= -2.56


@pytest.mark.parametrize("solver", SOLVERS)
def test_settings_of_a_run_make_the_rule_again(solver: str) -> None:
    """With every solver by its name; also what the command line merges."""
    given = {"enabled": True, "solver": solver, "probability": 0.2, "push": 0.1}
    rule = assisted(build_rule("pcd", {"chains": 7}), given)
    described = describe_assistance(rule)
    assert {f"solver_{key}" for key in SETTINGS[solver]} <= described.keys()
    config = read_settings({"sampler": describe_rule(rule), "mode_assisted": described})
    assert rebuild_rule(config) == rule
    merged = merge(None, ["probability=0.2", f"solver={solver}", "push=0.1"], {"--mode-assisted": True})
    assert merged.mode_assisted.model_dump(exclude_none=True) == given


def test_settings_of_modes_are_of_runs_with_modes() -> None:
    with pytest.raises(SettingError, match="add --mode-assisted"):
        merge(None, ["push=0.1"], {})
    with pytest.raises(SettingError, match="no mode solver is called"):
        assisted(hm.CD(1), {"enabled": True, "solver": "tabu"})
    assert assisted(hm.CD(1), {"enabled": False, "push": None}) == hm.CD(1)
    assert "mode_assisted" not in read_settings({}).to_dict()


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(SettingError, match="rule of two phases"):
        ModeAssisted("cd")  # pyright: ignore[reportArgumentType]
    with pytest.raises(SettingError, match="probability must be a number from 0 to 1"):
        ModeAssisted(hm.CD(1), probability=1.5)
    with pytest.raises(SettingError, match="push must be a number of at least 0"):
        ModeAssisted(hm.CD(1), push=-1.0)
    with pytest.raises(SettingError, match="baseline_steps must be"):
        ModeAssisted(hm.CD(1), baseline_steps=0)
    with pytest.raises(SettingError, match="the base rule makes none"):
        ModeAssisted(hm.PCD(sampler=hm.ParallelTempering(rungs=4)), baseline_steps=720)
    with pytest.raises(SettingError, match="density"):
        hm.fit(hm.DBN(4, [3, 2], seed=0), "bars-and-stripes:side=2", ASSISTED, updates=1)
