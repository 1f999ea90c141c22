"""Optimisers by name: any of optax's, with the learning rate kept outside them."""

from __future__ import annotations

import difflib
from functools import cache

import jax
import optax

from harmonium.energy.base import AbstractEnergyModel
from harmonium.errors import SettingError

OPTIMIZERS = (
    "sgd", "adam", "adamw", "adabelief", "adadelta", "adagrad", "adamax", "amsgrad", "lamb", "lars", "lion", "nadam",
    "nadamw", "novograd", "radam", "rmsprop", "rprop", "sign_sgd", "sm3", "yogi",
)  # fmt: skip
"""Names that ``--optimizer`` and ``hm.fit`` accept: optax's gradient methods, those that draw nothing at random."""


def build_optimizer(
    name: str | optax.GradientTransformation, *, momentum: float = 0.0, weight_decay: float = 0.0
) -> optax.GradientTransformation:
    """An optax transformation at unit rate; the trainer multiplies its updates by the scheduled rate.

    The same words give the same object, so that a second run of the same shapes compiles nothing.

    ``momentum`` belongs to plain SGD. ``weight_decay`` adds ``weight_decay * W`` to the gradient of couplings and
    leaves biases alone. Raises `SettingError` for an unknown name or a number out of range.
    """
    if not 0 <= momentum < 1:
        raise SettingError(f"momentum is a fraction of at least 0 and below 1, got {momentum}; pass e.g. 0.9")
    if not 0 <= weight_decay < float("inf"):
        raise SettingError(
            f"weight_decay must be a finite number of at least 0, got {weight_decay}; pass e.g. 1e-4"
        )
    if isinstance(name, str):
        if name not in OPTIMIZERS:
            nearest = difflib.get_close_matches(name, OPTIMIZERS, 1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"choose one of {', '.join(OPTIMIZERS)}"
            raise SettingError(f"no optimiser is called {name!r}; {hint}")
        if momentum and name != "sgd":
            raise SettingError(f"momentum={momentum} belongs to sgd, not to {name}; drop it or use sgd")
        return _named(name, momentum, weight_decay)
    if not isinstance(name, optax.GradientTransformation):
        raise SettingError(
            f"optimizer must be a name such as 'sgd' or a transformation of optax, got {name!r}; pass e.g. 'adam'"
        )
    return _with_decay(name, weight_decay)


@cache
def _named(name: str, momentum: float, weight_decay: float) -> optax.GradientTransformation:
    method = optax.sgd(1.0, momentum=momentum or None) if name == "sgd" else getattr(optax, name)(1.0)
    return _with_decay(method, weight_decay)


def _with_decay(method: optax.GradientTransformation, weight_decay: float) -> optax.GradientTransformation:
    if weight_decay:
        return optax.chain(optax.add_decayed_weights(weight_decay, mask=_couplings_only), method)
    return method


def _couplings_only(model: AbstractEnergyModel) -> AbstractEnergyModel:
    """A mask of the model's shape: True where a leaf belongs to a coupling."""
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: any(getattr(entry, "name", None) == "couplings" for entry in path), model
    )
