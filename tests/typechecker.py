"""The checker that tests put around every function of the package (see ``--jaxtyping-packages`` in pyproject.toml)."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from typing import Any, Self, TypeVar, Union

import jax
import numpy as np
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray

Function = TypeVar("Function", bound=Callable[..., Any])

ANY_ARRAY = jax.Array | np.ndarray
NUMERIC_TOWER = BeartypeConf(is_pep484_tower=True)  # as for a static checker, a whole number is a float too


def check_types(function: Function) -> Function:
    """Check types and shapes of arguments and result whenever ``function`` is called.

    Where the package says ``Array``, an array of numpy passes too: models keep the arrays they are given, and users
    pass rows as they have them. ``Self`` is not checked, because a method comes here without its class.
    """
    annotations = getattr(function, "__annotations__", {})
    function.__annotations__ = {name: widened(hint) for name, hint in annotations.items()}
    return beartype(conf=NUMERIC_TOWER)(function)


def widened(hint: Any) -> Any:
    """The hint with arrays of either library wherever it asks for one of jax, at any depth."""
    if hint is Self:
        return Any
    if hint is jax.Array:
        return ANY_ARRAY
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return hint.dtype[ANY_ARRAY, hint.dim_str] if hint.array_type is jax.Array else hint
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(widened(part) for part in inner)]  # noqa: UP007 - the members are known at run time only
    if origin in (tuple, list, dict):
        return types.GenericAlias(origin, tuple(part if part is ... else widened(part) for part in inner))
    return hint
