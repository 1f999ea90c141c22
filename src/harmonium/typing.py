"""The values that flow between the rooms of the house."""

from __future__ import annotations

from typing import TypeAlias

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Num, UInt32

Configuration: TypeAlias = tuple[Array, ...]
"""One array per layer, each of shape ``(*batch, units of the layer)``."""

Layers: TypeAlias = tuple[Array | np.ndarray, ...]
"""A configuration, or one side of it, as it comes from outside: arrays of jax or of numpy, of any number type."""

Clamp: TypeAlias = tuple[bool | Bool[Array | np.ndarray, "..."] | None, ...]
"""Per layer: None or False (free), True (held), or a boolean mask of the held units, shape ``(*batch, n)``."""

Words: TypeAlias = UInt32[Array, "2"]
"""Two 32-bit words: the key of one counter-based noise stream."""


class Batch(eqx.Module):
    """Rows of data and what is known about them; every field but ``x`` may be None and then costs nothing.

    - ``x``: the rows, shape ``(rows, n)``.
    - ``mask``: True where an entry was observed, shape ``(rows, n)``.
    - ``weight``: how much each row counts, shape ``(rows,)``; zero for the padding of a short last batch.
    - ``label``: one label per row.
    - ``row``: the row's number in its data set.
    """

    x: Num[Array, "rows n"]
    mask: Bool[Array, "rows n"] | None = None
    weight: Float[Array, " rows"] | None = None
    label: Int[Array, " rows"] | None = None
    row: Int[Array, " rows"] | None = None


class Step(eqx.Module):
    """What time it is in a run.

    ``index`` counts updates from 0 and ``horizon`` is where the schedules end. ``shared_key`` is the same for every
    member of an ensemble (schedules and common coins read it); only ``key`` differs between members. Both are raw
    noise words: they are derived from the run's base key before the loop, so that nothing is split inside it.
    """

    index: Int[Array, ""]
    horizon: Int[Array, ""]
    shared_key: Words
    key: Words
