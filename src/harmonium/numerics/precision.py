"""Double precision for the few computations that need it, closed at their border."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import jax
import numpy as np

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Tree = TypeVar("Tree")


def in_double_precision(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run ``function`` with 64-bit types enabled.

    It must return Python or numpy values only: a device array that left the block would be demoted silently.
    """

    @wraps(function)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped


def as_double(tree: Tree) -> Tree:
    """The same tree with every array as a float64 numpy array."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)


def as_single(tree: Tree) -> Tree:
    """The same tree with every array as a float32 numpy array; what is too large becomes infinite, in silence."""
    with np.errstate(over="ignore"):
        return jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), tree)
