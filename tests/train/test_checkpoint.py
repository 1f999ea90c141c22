import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
import pytest
from jaxtyping import Array

from harmonium.errors import FileError, HarmoniumWarning, SettingError
from harmonium.train import storage
from harmonium.train.checkpoint import Checkpoints, load_tree, save_tree
from harmonium.train.storage import write_tensors


class Layer(eqx.Module):
    weights: Any
    bias: Any
    name: str = eqx.field(static=True, default="layer")


class Chains(NamedTuple):
    particles: tuple[Any, ...]
    age: Any


def state() -> dict[str, Any]:
    layer = Layer(jnp.arange(6.0).reshape(2, 3) / 7, np.array([0.1, -0.0, np.nan]))
    return {
        "layers": (layer, Layer(jnp.ones((3, 1), jnp.bfloat16), None)),
        "optimizer": optax.adam(0.1).init(eqx.filter(layer, eqx.is_inexact_array)),
        "chains": Chains(
            (jnp.array([[0, 1]], jnp.uint8), np.zeros((4, 0), np.int8)), jnp.array([True, False])
        ),
        "key": jax.random.key(3),
        "keys": jax.random.split(jax.random.key(1, impl="rbg"), 4),
        "words": jax.random.key_data(jax.random.key(7)),
        "index": jnp.array(1234, jnp.int32),
        "wide": np.array(0.1, np.float64),
        "half": np.array([0.5], ml_dtypes.bfloat16),
        "rate": 0.3,
        "done": False,
        "count": 2**40,
        "a/b[0]": np.float32(2.0),
    }


def assert_same(left: Any, right: Any) -> None:
    assert jax.tree_util.tree_structure(left) == jax.tree_util.tree_structure(right)
    pairs = list(zip(jax.tree_util.tree_leaves(left), jax.tree_util.tree_leaves(right), strict=True))
    assert len(pairs) > 15
    for one, other in pairs:
        if isinstance(one, bool | int | float) and not isinstance(one, np.generic):
            assert type(one) is type(other)
            assert one == other
            continue
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
            one, other = jax.random.key_data(one), jax.random.key_data(other)
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def test_a_tree_comes_back_bit_for_bit(tmp_path: Path) -> None:
    save_tree(tmp_path / "x", state(), {"note": "half-way"})
    tree, metadata = load_tree(tmp_path / "x", state())
    assert_same(tree, state())
    assert metadata == {"note": "half-way"}
    assert jax.random.normal(tree["key"]) == jax.random.normal(state()["key"])
    assert str(jax.random.key_impl(tree["keys"])) == "rbg"


def test_shapes_and_dtypes_are_enough_to_read(tmp_path: Path) -> None:
    save_tree(tmp_path / "x", state())
    arrays = {name: value for name, value in state().items() if name not in ("rate", "done", "count")}
    save_tree(tmp_path / "y", arrays)
    with jax.enable_x64(True):
        like = jax.eval_shape(lambda: arrays)
    tree, _ = load_tree(tmp_path / "y", like)
    assert_same(tree, arrays)
    leaf = tree["wide"]
    assert isinstance(leaf, np.ndarray)  # jax, set to 32 bits, would have halved it
    assert leaf.dtype == np.float64


def test_a_tree_may_be_a_single_leaf_or_empty(tmp_path: Path) -> None:
    save_tree(tmp_path / "leaf", np.arange(3))
    assert load_tree(tmp_path / "leaf", np.zeros(3, int))[0].tolist() == [0, 1, 2]
    save_tree(tmp_path / "empty", {"a": None, "b": ()})
    assert load_tree(tmp_path / "empty", {"a": None, "b": ()})[0] == {"a": None, "b": ()}


def changed(**values: Any) -> dict[str, Any]:
    return {**state(), **values}


@pytest.mark.parametrize(
    ("like", "message"),
    [
        (changed(words=np.zeros(3, np.uint32)), r"has the shape \(2,\) instead of \(3,\)"),
        (changed(words=np.zeros(2, np.int32)), r"has the dtype uint32 instead of int32"),
        (changed(key=jax.random.key(0, impl="rbg")), r"has the dtype key<fry> instead of key<rbg>"),
        (changed(key=np.zeros(2, np.uint32)), r"has the shape \(\) instead of \(2,\)"),
        (changed(rate=1), r"has the dtype float64 instead of int64"),
        (changed(more=1.0), r"it has no \"tree\['more'\]\""),
        ({name: leaf for name, leaf in state().items() if name != "key"}, r"it also has \"tree\['key'\]\""),
    ],
)
def test_the_first_mismatch_is_named(tmp_path: Path, like: Any, message: str) -> None:
    save_tree(tmp_path / "x", state())
    with pytest.raises(FileError, match=f"does not fit: .*{message}; it is of a run with other settings"):
        load_tree(tmp_path / "x", like)


@pytest.mark.parametrize("leaf", ["text", jax.nn.relu, object(), 1j])
def test_a_leaf_that_is_no_array_is_refused(tmp_path: Path, leaf: Any) -> None:
    with pytest.raises(SettingError, match=r"\"tree\['a'\]\" is a .*not an array"):
        save_tree(tmp_path / "x", {"a": leaf})


def test_another_kind_of_file_is_no_checkpoint(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x", {}, {"kind": "model"})
    with pytest.raises(FileError, match="holds a model, not a checkpoint"):
        load_tree(tmp_path / "x", {})


# ------------------------------------------------------------------------------------------------------- the folder


def at(index: int) -> dict[str, Array]:
    return {"n": jnp.full((50,), index, jnp.int32)}


def test_the_newest_are_kept_and_the_newest_is_read(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "run" / "checkpoints")
    assert checkpoints.indices() == []
    assert checkpoints.latest(at(0)) is None
    for index in (0, 1000, 999_999, 10**12):
        checkpoints.save(index, at(index % 1000), {"index": index})
        assert checkpoints.indices()[-1] == index
    assert checkpoints.indices() == [999_999, 10**12]
    assert checkpoints.path(1000).name == "step-000000001000.safetensors"
    latest = checkpoints.latest(at(0))
    assert latest is not None
    assert latest.index == 10**12
    assert latest.metadata == {"index": 10**12}


def test_a_damaged_checkpoint_is_passed_over_and_then_replaced(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for index in (1, 2):
        checkpoints.save(index, at(index))
    checkpoints.path(2).write_bytes(checkpoints.path(2).read_bytes()[:-7])
    with pytest.warns(
        HarmoniumWarning, match=r"skipped a checkpoint: .*000002\.safetensors is damaged"
    ) as caught:
        latest = checkpoints.latest(at(0))
    assert len(caught) == 1
    assert latest is not None
    assert latest.index == 1
    assert latest.tree["n"].tolist() == [1] * 50

    # The run goes on from 1. What it saves next must count as the newest, and 1 must stay to fall back on.
    checkpoints.path(3).write_bytes(b"\0" * 100)
    checkpoints.save(2, at(7))
    assert checkpoints.indices() == [1, 2]
    latest = checkpoints.latest(at(0))
    assert latest is not None
    assert latest.tree["n"][0] == 7


def test_when_all_are_damaged_the_run_does_not_start_afresh_in_silence(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for index in (1, 2):
        checkpoints.save(index, at(index))
        checkpoints.path(index).write_bytes(b"")
    with (
        pytest.warns(HarmoniumWarning, match="skipped"),
        pytest.raises(FileError, match=r"no checkpoint in .* can be read \(2 are damaged\); restore one"),
    ):
        checkpoints.latest(at(0))


def test_neither_other_settings_nor_a_newer_format_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, at(1))
    with pytest.raises(FileError, match="does not fit"):
        checkpoints.latest({"m": jnp.zeros(3)})
    with monkeypatch.context() as newer:
        newer.setattr(storage, "FORMAT_VERSION", 2)
        checkpoints.save(2, at(2))
    with pytest.raises(FileError, match="install a newer"):
        checkpoints.latest(at(0))


def test_a_checkpoint_removed_by_the_running_trainer_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, at(1))
    monkeypatch.setattr(checkpoints, "indices", lambda: [1, 2])
    latest = checkpoints.latest(at(0))
    assert latest is not None
    assert latest.index == 1


def test_settings_are_checked() -> None:
    with pytest.raises(SettingError, match="keep must be at least 1, got 0"):
        Checkpoints("x", keep=0)
    with pytest.raises(SettingError, match="at least 0, got -1"):
        Checkpoints("x").save(-1, {})


def test_foreign_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    for name in ("notes.txt", "step-1.safetensors", "step-000000000001.safetensors.bak"):
        (tmp_path / name).write_text("mine")
    checkpoints = Checkpoints(tmp_path, keep=1)
    for index in (5, 6):
        checkpoints.save(index, at(index))
    assert checkpoints.indices() == [6]
    assert len(os.listdir(tmp_path)) == 4


def test_a_kill_at_any_point_of_saving_leaves_the_last_or_the_new_checkpoint(
    tmp_path: Path, killed: Callable[..., int]
) -> None:
    program = """
        import numpy as np
        from harmonium.train.checkpoint import Checkpoints
        for index in range(1, 9):
            Checkpoints("checkpoints").save(index, {"n": np.full(50, index, np.int32)})
            print(index, flush=True)
        """
    for moment, passage in [("before-temp", 1), ("mid-temp", 3), ("after-temp", 4), ("after-rename", 5)]:
        done = killed(f"checkpoint.{moment}:{passage}", program)
        assert done == passage - 1
        checkpoints = Checkpoints(tmp_path / "checkpoints")
        latest = checkpoints.latest(at(0))
        if latest is None:
            assert passage == 1
            continue
        assert latest.index == (passage if moment == "after-rename" else done)
        assert latest.tree["n"].tolist() == [latest.index] * 50
        # A run that goes on from here ends with the newest two and no leavings.
        checkpoints.save(latest.index + 1, at(latest.index + 1))
        assert len(os.listdir(tmp_path / "checkpoints")) == 2
        shutil.rmtree(tmp_path / "checkpoints")
