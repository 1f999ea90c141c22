"""Data by name: "digits", "bars-and-stripes:side=4,repeat=true"; one row of a table for each."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harmonium.data.base import DataSet
from harmonium.data.digits import digits
from harmonium.data.mnist import mnist_5k
from harmonium.data.modes import artificial_modes, planted
from harmonium.data.synthetic import bars_and_stripes, shifting_bars
from harmonium.errors import SettingError


@dataclass(frozen=True)
class Parameter:
    """One parameter of a data name: what it is called, its type, what it is when not given, and what it means."""

    name: str
    kind: type
    default: str
    meaning: str


@dataclass(frozen=True)
class NamedData:
    """A data set that can be asked for by name."""

    name: str
    meaning: str
    parameters: tuple[Parameter, ...]
    build: Callable[..., DataSet]


_NAMED = (
    NamedData(
        "digits",
        "handwritten digits of 8 x 8 pixels, 1400 train, 198 valid and 199 test rows in a fixed shuffle",
        (
            Parameter(
                "grey", bool, "false", "keep grey levels in [0, 1] instead of 1 above half of full scale"
            ),
        ),
        digits,
    ),
    NamedData(
        "bars-and-stripes",
        "the distinct square pictures of bars or of stripes, uniform; every split is the whole set",
        (
            Parameter("side", int, "4", "length of the side: 2^(side+1) - 2 patterns of side x side units"),
            Parameter("repeat", bool, "false", "keep all-on and all-off twice, as bars and as stripes"),
        ),
        bars_and_stripes,
    ),
    NamedData(
        "shifting-bars",
        "a block of ones at each place of a ring, uniform; every split is the whole set",
        (
            Parameter("length", int, "24", "units in the ring, and patterns"),
            Parameter("bar", int, "length // 2", "ones in the block"),
        ),
        shifting_bars,
    ),
    NamedData(
        "artificial-modes",
        "five noisy random pictures of 28 x 28 of unequal weight; fresh rows from .stream, entropy 78.826 nats",
        (Parameter("rows", int, "10000", "rows of train; valid has 1000, test the paper's 10000"),),
        artificial_modes,
    ),
    NamedData(
        "planted",
        "exact rows of a restricted Boltzmann machine with clusters of known weight; fresh rows from .stream",
        (
            Parameter(
                "clusters", int, "8", "clusters, and hidden units: 2 to 16; weights rise like 1, 2, 3, ..."
            ),
            Parameter("visible", int, "64", "visible units"),
            Parameter("strength", float, "3.0", "size of every weight: how deep the clusters are"),
            Parameter("seed", int, "0", "of the centres and the rows"),
            Parameter("rows", int, "10000", "rows of train; valid and test have 1000 each"),
        ),
        planted,
    ),
    NamedData(
        "mnist-5k",
        "handwritten digits of 28 x 28 pixels, 4000 train, 200 valid and 800 test rows in a fixed shuffle "
        "(pip install 'harmonium[data]')",
        (
            Parameter(
                "grey", bool, "false", "keep grey levels in [0, 1] instead of 1 above half of full scale"
            ),
        ),
        mnist_5k,
    ),
)
_TABLE = {entry.name: entry for entry in _NAMED}


def data_names() -> tuple[str, ...]:
    """The names that `harmonium.load_data` knows.

    **Example**

    >>> data_names()
    ('digits', 'bars-and-stripes', 'shifting-bars', 'artificial-modes', 'planted', 'mnist-5k')
    """
    return tuple(_TABLE)


def is_data_name(text: str) -> bool:
    """Whether the part before the first colon is a data name; whatever follows may still be wrong."""
    return text.partition(":")[0] in _TABLE


def data_parameters(name: str) -> tuple[Parameter, ...]:
    """The parameters of a data name, in order.

    **Raises** SettingError for a name that is not known.

    **Example**

    >>> [(p.name, p.default) for p in data_parameters("bars-and-stripes")]
    [('side', '4'), ('repeat', 'false')]
    """
    return _entry(name.partition(":")[0]).parameters


def describe_name(name: str) -> str:
    """A data name and its parameters, one a line, for people.

    **Example**

    >>> print(describe_name("digits"))
    digits: handwritten digits of 8 x 8 pixels, 1400 train, 198 valid and 199 test rows in a fixed shuffle
      grey=true|false  keep grey levels in [0, 1] instead of 1 above half of full scale (default: false)
    """
    entry = _entry(name.partition(":")[0])
    shown = [(f"{p.name}={_KIND_WORDS[p.kind]}", p) for p in entry.parameters]
    width = max((len(left) for left, _ in shown), default=0)
    lines = [f"  {left:<{width}}  {p.meaning} (default: {p.default})" for left, p in shown]
    return "\n".join([f"{entry.name}: {entry.meaning}", *lines])


def given_parameters(text: str) -> dict[str, Any]:
    """The parameters written after the colon of a data name, as values of their types.

    **Raises** SettingError for a name or parameter that is not known (with the nearest one), for a parameter given
    twice, and for a value of another type.
    """
    name, _, tail = text.partition(":")
    entry = _entry(name)
    known = {parameter.name: parameter for parameter in entry.parameters}
    given: dict[str, Any] = {}
    for part in (part.strip() for part in tail.split(",") if part.strip()):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in known:
            raise SettingError(
                f"{name} has no parameter {key!r}{nearest(key, tuple(known))}; its parameters are {', '.join(known)}"
            )
        if not equals:
            raise SettingError(f"{name}: write {key}={_KIND_WORDS[known[key].kind]} instead of {part!r}")
        if key in given:
            raise SettingError(f"{name}: {key} is given twice; keep one")
        given[key] = _value(name, known[key], value)
    return given


def build_named(text: str, **overrides: Any) -> DataSet:
    """The data set of a name with its parameters; ``overrides`` win over what is written."""
    entry = _entry(text.partition(":")[0])
    return entry.build(**{**given_parameters(text), **overrides})


def nearest(word: str, known: Sequence[str]) -> str:
    """``"; did you mean 'x'?"`` where a known word is near, else nothing."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""


_KIND_WORDS = {bool: "true|false", int: "N", float: "X"}
_WANTED = {bool: "true or false", int: "a whole number", float: "a number"}


def _value(name: str, parameter: Parameter, text: str) -> Any:
    if parameter.kind is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if parameter.kind is int and re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        return int(text)
    if parameter.kind is float and re.fullmatch(
        r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?", text.lower()
    ):
        return float(text)
    wanted = _WANTED[parameter.kind]
    raise SettingError(f"{name}: {parameter.name} must be {wanted}, got {text!r}")


def _entry(name: str) -> NamedData:
    if name not in _TABLE:
        raise SettingError(
            f"there is no data name {name!r}{nearest(name, data_names())}; the names are {', '.join(data_names())}"
        )
    return _TABLE[name]
