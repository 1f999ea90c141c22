"""Checkpoints: any pytree of arrays in a file, and a folder of them that always holds a good one.

The file stores leaves, not structure: each leaf is a tensor whose name is its path in the tree, and reading needs a
tree of the same structure to hang the leaves on. Nothing in a file can therefore decide what code runs.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from harmonium.errors import FileError, HarmoniumWarning, SettingError
from harmonium.train.atomic import remove_leftovers, sync_folder
from harmonium.train.storage import DamagedFileError, read_tensors, write_tensors

Tree = TypeVar("Tree")

_KIND = "tree"
_NAME = re.compile(r"step-(\d{12,})\.safetensors")


def save_tree(
    path: str | os.PathLike[str],
    tree: Any,
    metadata: Mapping[str, Any] | None = None,
    *,
    overwrite: bool = False,
    fault: str = "checkpoint",
) -> Path:
    """Writes every leaf of a pytree with its exact dtype and shape, whole or not at all; returns the path written.

    Leaves are arrays of numpy or jax, Python numbers, and typed jax keys (stored as their words and the name of their
    generator). ``metadata`` is any JSON description.

    Raises SettingError for a leaf that is no array (separate those first, as ``equinox.partition`` does), FileError
    when the file cannot be written or exists and ``overwrite`` is False.
    """
    tensors: dict[str, np.ndarray] = {}
    keys: dict[str, str] = {}
    for name, leaf in _named_leaves(tree):
        if name in tensors:
            raise SettingError(
                f"two leaves of the tree are both called {name!r}; give its nodes distinct names"
            )
        if _is_key(leaf):
            keys[name] = str(jax.random.key_impl(leaf))
            leaf = jax.random.key_data(leaf)
        tensors[name] = _array(name, leaf)
    document = {"kind": _KIND, "keys": keys, "metadata": dict(metadata or {})}
    return write_tensors(path, tensors, document, overwrite, fault=fault)


def load_tree(
    path: str | os.PathLike[str], like: Tree, *, resized: str | None = None
) -> tuple[Tree, dict[str, Any]]:
    """Returns the tree of ``save_tree`` in the structure of ``like``, and its metadata.

    The leaves of ``like`` only give names, shapes and dtypes, so that ``jax.ShapeDtypeStruct`` (from
    ``jax.eval_shape``) serves as well as arrays. Arrays come back as numpy arrays of exactly the dtype written, also
    float64 where jax is set to 32 bits: putting them on a device is the caller's decision. Keys come back as typed
    jax keys, Python numbers as Python numbers.

    Leaves whose names begin with ``resized`` may have another length on any axis, but not another number of axes: a run
    may have let them grow.

    Raises FileError naming the first leaf that is missing, superfluous, or of another shape or dtype, and whatever
    ``read_tensors`` raises.
    """
    tensors, document = read_tensors(path)
    if document.get("kind") != _KIND:
        raise FileError(
            f"{path} holds a {document.get('kind', 'nameless thing')}, not a checkpoint; name a checkpoint"
        )
    keys: dict[str, str] = document["keys"]
    leaves: list[Any] = []
    for name, leaf in _named_leaves(like):
        if name not in tensors:
            raise _mismatch(path, f"it has no {name!r}")
        found: Any = tensors.pop(name)
        if name in keys:
            found = jax.random.wrap_key_data(found, impl=keys[name])
        shape, dtype = _form(leaf)
        free = resized is not None and name.startswith(resized) and found.ndim == len(shape)
        if tuple(found.shape) != shape and not free:
            raise _mismatch(path, f"{name!r} has the shape {tuple(found.shape)} instead of {shape}")
        if found.dtype != dtype:
            raise _mismatch(path, f"{name!r} has the dtype {found.dtype} instead of {dtype}")
        leaves.append(type(leaf)(found.item()) if isinstance(leaf, bool | int | float) else found)
    if tensors:
        raise _mismatch(path, f"it also has {next(iter(tensors))!r}")
    return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(like), leaves), document["metadata"]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint read back: the number of updates done, the state as it was then, its description, and the update
    counts of newer checkpoints that are damaged, newest first."""

    index: int
    tree: Any
    metadata: dict[str, Any]
    damaged: tuple[int, ...] = ()


class Checkpoints:
    """The checkpoints of one run, ``step-000000001000.safetensors`` and so on in one folder.

    At any moment, also in the middle of ``save``, the folder holds at least one whole checkpoint once the first has
    been saved. ``keep`` is how many of the newest stay. Only one process may save at a time (the lock of the run
    folder sees to that); any number may read.
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 2):
        if keep < 1:
            raise SettingError(
                f"keep must be at least 1, got {keep}; 2 outlives a checkpoint that is damaged"
            )
        self.folder = Path(folder)
        self.keep = keep

    def path(self, index: int) -> Path:
        """Where the checkpoint after ``index`` updates is kept."""
        return self.folder / f"step-{index:012d}.safetensors"

    def indices(self) -> list[int]:
        """The update counts of the checkpoints that are there, rising; whether they can be read is not asked."""
        if not self.folder.is_dir():
            return []
        return sorted(int(match[1]) for match in map(_NAME.fullmatch, os.listdir(self.folder)) if match)

    def save(
        self,
        index: int,
        tree: Any,
        metadata: Mapping[str, Any] | None = None,
        *,
        also: int | None = None,
    ) -> Path:
        """Saves the state after ``index`` updates, and removes older ones only once it is safely on the disk.

        The checkpoint after ``also`` updates stays too, if it is there. Checkpoints beyond ``index`` are removed: they
        are of a future that was given up when the run went on from an earlier one. Raises what ``save_tree`` raises.
        """
        if index < 0:
            raise SettingError(f"a checkpoint needs the number of updates done, at least 0, got {index}")
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True, exist_ok=True)
            sync_folder(self.folder.parent)
        remove_leftovers(self.folder)
        path = save_tree(self.path(index), tree, metadata, overwrite=True)
        kept = [known for known in self.indices() if known <= index][-self.keep :]
        for known in self.indices():
            if known not in kept and known != also:
                self.path(known).unlink(missing_ok=True)
        return path

    def latest(self, like: Any, *, resized: str | None = None) -> Checkpoint | None:
        """Returns the newest checkpoint that can be trusted, or None when there are none; ``resized`` as `load_tree`.

        A damaged one is skipped with a HarmoniumWarning. Raises FileError when all are damaged, when one is of a newer
        format, or when it does not fit ``like``: the run would then silently go back in time.
        """
        damaged: list[int] = []
        for index in reversed(self.indices()):
            path = self.path(index)
            try:
                tree, metadata = load_tree(path, like, resized=resized)
            except DamagedFileError as error:
                damaged.append(index)
                warnings.warn(f"skipped a checkpoint: {error}", HarmoniumWarning, stacklevel=2)
            except FileError:
                if path.exists():
                    raise
                # A run that is still training removed it between the listing and the reading.
            else:
                return Checkpoint(index, tree, metadata, tuple(damaged))
        if damaged:
            raise FileError(
                f"no checkpoint in {self.folder} can be read ({len(damaged)} are damaged); restore one from a copy, or "
                "start the run again with force=True (--force)"
            )
        return None


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [("tree" + jax.tree_util.keystr(path), leaf) for path, leaf in leaves]


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _form(leaf: Any) -> tuple[tuple[int, ...], Any]:
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return tuple(leaf.shape), leaf.dtype
    array = np.asarray(leaf)
    return array.shape, array.dtype


def _array(name: str, leaf: Any) -> np.ndarray:
    if not isinstance(leaf, bool | int | float) and not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        raise SettingError(
            f"{name!r} is a {type(leaf).__name__}, not an array, and cannot be stored; take it out of the tree first "
            "(equinox.partition(tree, equinox.is_array))"
        )
    return np.asarray(leaf)


def _mismatch(path: str | os.PathLike[str], what: str) -> FileError:
    return FileError(
        f"{path} does not fit: {what}; it is of a run with other settings, so resume with the run's own config.toml"
    )
