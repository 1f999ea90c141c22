"""Do these rows fit these units? Refuse with the cure, or hand over the compact array to train on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from harmonium.data.scan import Scan, as_matrix, compact, convert, row_blocks, scan
from harmonium.errors import DataError, SettingError

Support = Sequence[int | float] | str
"""What values a unit may take: a list of them, such as ``(0.0, 1.0)`` or ``(-1.0, 1.0)``, or "real"."""

_TWO_VALUED = ((0.0, 1.0), (-1.0, 1.0))
_BINARIZE_CURE = 'pass binarize="threshold" (cut at half of full scale) or binarize="stochastic" (draw bits)'


class Encoded(NamedTuple):
    """Rows as the units take them, and in a few words what was done to them ("as given" where nothing was)."""

    rows: np.ndarray
    mapping: str


def check_support(
    rows: Any,
    support: Support,
    what: str = "the data",
    *,
    width: int | None = None,
    binarization: str = "none",
    columns: Sequence[str] | None = None,
) -> None:
    """Refuse rows that units with this support cannot take, or that `encode` cannot map to what they take.

    ``what`` names the rows in messages, ``width`` is the number of units, ``columns`` are names of the columns. Under
    ``binarization == "stochastic"`` two-valued units take probabilities in [0, 1], of which the trainer draws bits.

    **Raises** DataError, naming the number, the column and the cure, for: no rows or no columns; another width; text,
    objects, or other than two axes; NaN or infinite entries; values outside the support; grey values for two-valued
    units. SettingError for a support that is not understood.

    **Example**

    >>> check_support([[0, 1], [1, 1]], (0.0, 1.0))
    >>> check_support([[0.5, 3.0], [0.4, 7.0]], (0.0, 1.0), "train rows")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    harmonium.errors.DataError: train rows: column 1 runs from 3 to 7, but these units take only the values 0 and 1; ...
    """
    _checked(rows, support, what, width, binarization, columns)


def encode(
    rows: Any,
    support: Support,
    what: str = "the data",
    *,
    width: int | None = None,
    binarization: str = "none",
    columns: Sequence[str] | None = None,
) -> Encoded:
    """The compact array that units with this support train on, after `check_support`.

    0/1 and -1/+1 data are mapped to whichever the units take: ``2x - 1`` for spin units, ``(x + 1) / 2`` for Bernoulli
    units. Types: uint8 for 0/1, int8 for -1/+1 and other lists of small whole numbers, float32 in [0, 1] under
    ``binarization == "stochastic"``, and float32 for real units, where float64 stays float64. An array that is already
    so is returned itself, not copied.

    **Raises** as `check_support`.

    **Example**

    >>> encode([[0, 1]], (-1.0, 1.0))
    Encoded(rows=array([[-1,  1]], dtype=int8), mapping='0/1 to -1/+1 (2x - 1)')
    """
    table, found = _checked(rows, support, what, width, binarization, columns)
    if isinstance(support, str):
        if table.dtype.kind == "f":
            return Encoded(table, "as given")
        return Encoded(convert(table, np.float32), f"{table.dtype} to float32")
    values = tuple(sorted(float(value) for value in support))
    if binarization == "stochastic" and values in _TWO_VALUED:
        return Encoded(convert(table, np.float32), "probabilities, bits drawn afresh")
    if values == (0.0, 1.0):
        if found.zero_one:
            return Encoded(compact(table, found), "as given")
        return Encoded(_mapped(table, np.uint8, lambda x: x > 0), "-1/+1 to 0/1 ((x + 1) / 2)")
    if values == (-1.0, 1.0):
        if found.spin:
            return Encoded(compact(table, found), "as given")
        return Encoded(
            _mapped(table, np.int8, lambda x: 2 * (x > 0).astype(np.int8) - 1), "0/1 to -1/+1 (2x - 1)"
        )
    whole = all(value.is_integer() and -128.0 <= value <= 127.0 for value in values)
    return Encoded(convert(table, np.int8 if whole else np.float32), "as given")


def _checked(
    rows: Any,
    support: Support,
    what: str,
    width: int | None,
    binarization: str,
    columns: Sequence[str] | None,
) -> tuple[np.ndarray, Scan]:
    """The rows as a matrix and what a scan found in them, or the refusal."""
    table = as_matrix(rows, what)
    if table.size == 0:
        raise DataError(f"{what} are empty (shape {table.shape}); at least one row and one column are needed")
    if width is not None and table.shape[1] != width:
        raise DataError(
            f"{what} have {table.shape[1]} columns but the model has {width} visible units; "
            f"build the model with {table.shape[1]} or pass rows of {width} values"
        )
    found = scan(table)
    if not found.finite:
        _refuse_gaps(table, found, what, columns)
    if isinstance(support, str):
        if support != "real":
            raise SettingError(f'a support must be a list of values or "real", got {support!r}')
        return table, found
    values = tuple(sorted(float(value) for value in support))
    if values not in _TWO_VALUED:
        _check_listed(table, values, what, columns)
    elif binarization == "stochastic":
        if found.low < 0.0 or found.high > 1.0:
            raise DataError(
                f"{what} run from {found.low:.6g} to {found.high:.6g}, but bits are drawn of probabilities in [0, 1]; "
                'load these rows with binarize="stochastic" and the scale of the training data'
            )
    elif not (found.zero_one or found.spin):
        _refuse_for_two_values(table, found, values, what, columns)
    return table, found


def _check_listed(
    table: np.ndarray, values: tuple[float, ...], what: str, columns: Sequence[str] | None
) -> None:
    for block in row_blocks(table):
        wrong = ~np.isin(table[block], values)
        if wrong.any():
            row, column = (int(index) for index in np.argwhere(wrong)[0])
            raise DataError(
                f"{what}: the value {table[block][row, column]:g} of row {block.start + row}, "
                f"{_column(column, columns)}, is none of the values these units take ({_listing(values)}); "
                "recode it or choose units that take it"
            )


def _refuse_for_two_values(
    table: np.ndarray, found: Scan, values: tuple[float, ...], what: str, columns: Sequence[str] | None
) -> NoReturn:
    if found.low >= 0.0 and found.high <= 1.0:
        row, column = _first_where(table, lambda x: (x != 0) & (x != 1))
        raise DataError(
            f"{what} hold grey values, such as {table[row, column]:.4g} in row {row}, {_column(column, columns)}, but "
            f"these units take only the values {_listing(values)}; {_BINARIZE_CURE}"
        )
    # Data that could be spins are judged against [-1, 1], so that the column named is one that is really at fault.
    low = -1.0 if found.low >= -1.0 and found.high <= 1.0 else 0.0
    lows, highs = _column_ranges(table)
    outside = (lows < low) | (highs > 1.0)
    if not outside.any():
        row, column = _first_where(table, lambda x: (x != -1) & (x != 1))
        raise DataError(
            f"{what} run from {found.low:.4g} to {found.high:.4g} with values such as {table[row, column]:.4g} in row "
            f"{row}, {_column(column, columns)}, but these units take only the values {_listing(values)}; recode the "
            f"data as two values, or scale them to [0, 1] and {_BINARIZE_CURE}"
        )
    column = int(np.argmax(outside))
    more = int(outside.sum()) - 1
    others = f" ({more} other column{'s are' if more > 1 else ' is'} out of range too)" if more else ""
    fault = (
        f"{what}: {_column(column, columns)} runs from {_short(lows[column])} to {_short(highs[column])}, but these "
        f"units take only the values {_listing(values)}{others}"
    )
    if found.low >= 0.0 and 1.0 < found.high <= 255.0:
        raise DataError(
            f"{fault}; if these are grey levels, {_BINARIZE_CURE}; else choose units that take such values"
        )
    raise DataError(
        f"{fault}; scale the columns to [0, 1] and {_BINARIZE_CURE}, or choose units that take such values"
    )


def _refuse_gaps(table: np.ndarray, found: Scan, what: str, columns: Sequence[str] | None) -> NoReturn:
    row, column = found.first_bad or (0, 0)
    place = f"the first in row {row}, {_column(column, columns)}"
    if found.nans and not found.infinities:
        raise DataError(
            f"{what} hold {found.nans} NaN of {table.size} entries, {place}; complete rows are needed: "
            "drop the rows with NaN or fill them in"
        )
    counted = f"{found.infinities} infinite entries" + (f" and {found.nans} NaN" if found.nans else "")
    raise DataError(f"{what} hold {counted}, {place}; replace them by finite numbers or drop those rows")


def _mapped(table: np.ndarray, dtype: Any, rule: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    result = np.empty(table.shape, dtype)
    for block in row_blocks(table):
        result[block] = rule(table[block])
    return result


def _first_where(table: np.ndarray, wrong: Callable[[np.ndarray], np.ndarray]) -> tuple[int, int]:
    for block in row_blocks(table):
        places = wrong(table[block])
        if places.any():
            row, column = np.argwhere(places)[0]
            return block.start + int(row), int(column)
    raise AssertionError("a scan said that such an entry exists")


def _column_ranges(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(table.min(axis=0)), np.asarray(table.max(axis=0))


def _column(index: int, columns: Sequence[str] | None) -> str:
    return f"column {index}" if columns is None else f"column {index} ({columns[index]!r})"


def _short(value: Any) -> str:
    """A number in few digits, or in all where few would make it look whole."""
    short = f"{value:.6g}"
    return short if float(short) == value or "." in short else str(value)


def _listing(values: Sequence[float]) -> str:
    if len(values) == 2:
        return f"{values[0]:g} and {values[1]:g}"
    return ", ".join(f"{value:g}" for value in values)
