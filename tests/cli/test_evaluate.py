from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import harmonium as hm
from tests.cli.conftest import Command

KEYS = {"value", "stderr", "low", "high", "row_stderr", "kind", "reliable", "reason"}


def test_a_run_is_scored_on_its_own_data(harmonium: Command, small_run: Path) -> None:
    said = harmonium(f"evaluate {small_run} --json")
    assert (said.status, said.err) == (0, "")
    result = said.json
    assert result["log_likelihood"].keys() >= KEYS
    assert result["log_partition"].keys() >= KEYS
    data = hm.load_data("bars-and-stripes:side=2")
    model = hm.load_run(small_run).model
    assert result["log_likelihood"]["value"] == hm.log_likelihood(model, data.test).value
    assert result["log_partition"]["value"] == hm.log_partition(model).value
    assert result["log_partition"]["row_stderr"] is None
    assert (result["method"], result["n"]) == ("exact", 6)
    assert result["data"] == {
        "name": "bars-and-stripes:side=2",
        "split": "test",
        "fingerprint": data.fingerprint,
        "binarization": "none",
    }
    assert result["model"]["kind"] == "RBM"


def test_words_say_the_same(harmonium: Command, small_run: Path) -> None:
    value = harmonium(f"evaluate {small_run} --json").json["log_likelihood"]["value"]
    said = harmonium(f"evaluate {small_run} --split valid")
    assert said.status == 0
    assert said.out.startswith(f"valid log-likelihood: {value:.4f} nats per row, +- ")
    assert "(exact)" in said.out


def test_a_model_file_with_data(harmonium: Command, small_run: Path) -> None:
    np.save("rows.npy", np.array([[0, 0, 1, 1], [1, 1, 1, 1]]))
    said = harmonium(f"evaluate {small_run}/model.safetensors --data rows.npy --json")
    assert said.json["n"] == 2
    assert said.json["data"]["split"] == "train"
    assert "no held-out rows" in said.err


def test_one_row_has_no_error_over_rows(harmonium: Command, small_run: Path) -> None:
    Path("row.csv").write_text("0,0,1,1\n")
    said = harmonium(f"evaluate {small_run} --data row.csv")
    assert said.status == 0
    assert "nats per row, 1 row (exact)" in said.out
    assert (
        harmonium(f"evaluate {small_run} --data row.csv --json").json["log_likelihood"]["row_stderr"] is None
    )


def test_other_data_are_binarised_as_the_run_s_own(harmonium: Command) -> None:
    levels = np.random.default_rng(0).integers(0, 17, (40, 4))
    levels[0, 0] = 16
    np.save("train.npy", levels)
    np.save("dark.npy", levels // 2)
    assert (
        harmonium(
            "train --data train.npy --binarize threshold --hidden 3 --chains 16 --updates 1 --out run"
        ).status
        == 0
    )
    result = harmonium("evaluate run --data dark.npy --json").json
    assert result["data"]["binarization"] == "threshold 0.5 of 16"


def test_an_unreliable_estimate_is_told_by_the_status(
    harmonium: Command, small_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubtful = hm.Estimate(-3.0, stderr=0.5, reliable=False, reason="too few samples")
    monkeypatch.setattr("harmonium.evaluate.likelihood.both_estimates", lambda *_, **__: (doubtful, doubtful))
    said = harmonium(f"evaluate {small_run}")
    assert said.status == 3
    assert "test log-likelihood: -3.0000 nats per row [-3.9800, -2.0200]" in said.out
    assert "not to be trusted: too few samples" in said.out
    said = harmonium(f"evaluate {small_run} --json")
    assert said.status == 3
    assert said.json["log_likelihood"]["reliable"] is False


def test_a_model_too_large_is_refused_with_the_number_of_bits(harmonium: Command) -> None:
    hm.save(hm.RBM(30, 30, seed=0), "large.safetensors")
    np.save("rows.npy", np.zeros((2, 30), np.uint8))
    said = harmonium("evaluate large.safetensors --data rows.npy --method exact")
    assert (said.status, said.out) == (2, "")
    assert "2**30 states" in said.err
    assert "use --method bracket, which" in said.err
    assert "--bit-budget 30" in said.err
    hm.save(hm.RBM(30, 5, seed=0), "small.safetensors")
    exactly = "evaluate small.safetensors --data rows.npy --method exact --bit-budget"
    assert harmonium(f"{exactly} 4").status == 2
    assert harmonium(f"{exactly} 5").status == 0


def test_annealing_when_asked_for_and_when_nothing_else_fits(harmonium: Command, small_run: Path) -> None:
    exact = harmonium(f"evaluate {small_run} --json").json["log_likelihood"]
    said = harmonium(f"evaluate {small_run} --method ais --seed 3 --json")
    assert said.status == 0
    result = said.json
    assert result["method"] == "ais"
    assert result["log_likelihood"]["kind"] == "stochastic upper bound"
    assert result["log_partition"]["kind"] == "stochastic lower bound"
    found = result["log_likelihood"]
    assert abs(found["value"] - exact["value"]) < 4 * found["stderr"] + 1e-4
    assert found["low"] <= found["value"] <= found["high"]
    assert "forward" in found["reason"]
    assert "reverse" in found["reason"]
    data = hm.load_data("bars-and-stripes:side=2")
    model = hm.load_run(small_run).model
    assert found["value"] == hm.log_likelihood(model, data, "ais", seed=3).value
    said = harmonium(f"evaluate {small_run} --bit-budget 2 --budget 0.01 --json")
    assert said.json["method"] == "bracket"
    partition = said.json["log_partition"]
    assert partition["kind"] == "consistent"
    assert partition["cost"]["bridge"] == partition["value"]
    assert {"forward", "forward_stderr", "reverse", "reverse_stderr"} <= partition["cost"].keys()
    assert said.json["log_partition"]["cost"]["operations"] <= 0.01 * 2e10
    said = harmonium(f"evaluate {small_run} --method ais --chains 20 --temperatures 7 --json")
    assert said.json["log_partition"]["cost"]["chains"] == 20
    assert said.json["log_partition"]["cost"]["temperatures"] == 7
    words = harmonium(f"evaluate {small_run} --method ais")
    assert "(stochastic upper bound)" in words.out
    assert "reversed from exact draws" in words.err


def test_a_bracket_with_settings(
    harmonium: Command, small_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"evaluate {small_run} --method bracket --ladders 8 --rungs 3 --sweeps 40 --burn-in 24 --chains 2"
    monkeypatch.setattr("harmonium.cli.outcome._LONG", 1e3)
    said = harmonium(f"{line} --json")
    cost = said.json["log_partition"]["cost"]
    assert [cost[name] for name in ("ladders", "rungs", "sweeps", "burn_in", "chains")] == [8, 3, 40, 24, 2]
    assert said.err.startswith("bracket: 8 x 2 ladders of 3 rungs, 24 and 40 sweeps, ")
    words = harmonium(line)
    assert "(consistent" in words.out
    assert "bridge between forward" in words.err


def test_annealing_that_is_not_to_be_trusted_is_told_by_the_status(harmonium: Command) -> None:
    """Strong weights and one temperature: a few chains carry all the weight."""
    generator = np.random.default_rng(0)
    model = hm.RBM.from_arrays(3 * generator.standard_normal((14, 9)), np.zeros(14), np.zeros(9))
    hm.save(model, "strong.safetensors")
    np.save("rows.npy", np.zeros((2, 14), np.uint8))
    said = harmonium("evaluate strong.safetensors --data rows.npy --method ais --temperatures 1")
    assert said.status == 3
    assert "not to be trusted: the forward weights are worth" in said.out


def test_the_least_budget_that_is_named_is_enough(harmonium: Command, small_run: Path) -> None:
    said = harmonium(f"evaluate {small_run} --method ais --budget 1e-9")
    least = said.err.split("pass --budget ")[1].split(" or more")[0]
    said = harmonium(f"evaluate {small_run} --method ais --budget {least} --json")
    assert said.json["log_partition"]["cost"]["temperatures"] == 10


def test_long_annealing_is_announced(
    harmonium: Command, small_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"evaluate {small_run} --method ais --temperatures 20 --chains 10"
    assert "annealing: " not in harmonium(line).err
    monkeypatch.setattr("harmonium.cli.outcome._LONG", 1e3)
    said = harmonium(line)
    assert said.err.startswith("annealing: 20 temperatures with 10 chains each way, ")
    assert " operations\n" in said.err
    assert "annealing" not in said.out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nowhere", "there is no nowhere"),
        ("folder", "is not a run folder"),
        ("text.safetensors", "text.safetensors"),
        ("{run}/model.safetensors", "add --data"),
        ("{run} --split tests", "there is no split 'tests'"),
        ("{run} --method guess", "no method is called 'guess'; choose one of auto, exact, ais, bracket"),
        (
            "{run} --chains 20",
            "--chains 20 is a setting of annealing and a bracket, which --method auto may or may not choose; ask for "
            "it with --method ais or --method bracket",
        ),
        (
            "{run} --method exact --temperatures 9",
            "--temperatures 9 is a setting of annealing, which --method exact has no use",
        ),
        (
            "{run} --method exact --budget 1e-9",
            "bounded by --bit-budget alone; leave --budget out, or use --method auto",
        ),
        ("{run} --method ais --budget 1 --temperatures 9", "--temperatures 9 and --budget both say"),
        (
            "{run} --method ais --budget 1e-9",
            "at least 10 temperatures, which is more than the budget allows; pass ",
        ),
        ("{run} --seed -1", "--seed must be a whole number"),
        ("{run} --bit-budget -1", "--bit-budget must be a whole number of at least 0"),
        ("{run} --method bracket --ladders 7", "--ladders must be a whole number from 8"),
        ("{run} --method bracket --burn-in -1", "--burn-in must be a whole number from 0"),
        (
            "{run} --method bracket --temperatures 7",
            "--temperatures 7 is a setting of annealing, which --method bracket",
        ),
        (
            "{run} --method ais --sweeps 7",
            "--sweeps 7 is a setting of a bracket, which --method ais has no use for",
        ),
        ("{run} --method bracket --budget 1 --sweeps 9", "--sweeps 9 and --budget both say"),
        (
            "{run} --method bracket --budget 1e-9",
            "takes at least 20 sweeps, which is more than the budget allows; pass ",
        ),
        ("{run} --method ais --chains 1", "--chains must be a whole number from 2"),
        ("{run} --budget 0", "--budget must be a number of seconds above 0, got 0"),
        ("{run} --data wide.npy", "have 5 columns but the model has 4"),
        ("{run} --data wide.npy --split test", "has no test split"),
        ("{run} --binarize threshold", "name the data too"),
    ],
)
def test_bad_input(harmonium: Command, small_run: Path, line: str, message: str) -> None:
    Path("folder").mkdir()
    Path("text.safetensors").write_text("hello, this is text")
    np.save("wide.npy", np.zeros((2, 5), np.uint8))
    said = harmonium(f"evaluate {line.format(run=small_run)}")
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("error: ")
    assert len(said.err.splitlines()) == 1
    assert message in said.err


def test_a_run_whose_data_have_changed_is_not_scored(harmonium: Command) -> None:
    np.save("rows.npy", np.tile(np.eye(4, dtype=np.uint8), (10, 1)))
    assert harmonium("train --data rows.npy --hidden 3 --chains 16 --updates 1 --out run").status == 0
    np.save("rows.npy", 1 - np.tile(np.eye(4, dtype=np.uint8), (10, 1)))
    said = harmonium("evaluate run")
    assert said.status == 2
    assert "fingerprint" in said.err
