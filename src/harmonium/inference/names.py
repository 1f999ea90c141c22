"""The inferences by name: what ``--inference`` and a run's ``config.toml`` may say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, SupportsIndex

from harmonium.errors import SettingError
from harmonium.inference.base import AbstractInference
from harmonium.inference.clamped import ClampedGibbs
from harmonium.inference.exact import Exact
from harmonium.inference.mean_field import MeanField

INFERENCES: Mapping[str, Callable[..., AbstractInference]] = MappingProxyType(
    {"exact": Exact, "mean-field": MeanField, "gibbs": ClampedGibbs}
)


def default_inference(model: str) -> str | None:
    """The inference of a model by its name where none is asked for: None leaves it to the rule.

    That of a dbm is "mean-field": its hidden layers are coupled, and an exact sum over them would enumerate half.
    """
    return "mean-field" if model == "dbm" else None


def build_inference(
    inference: str | AbstractInference, sweeps: SupportsIndex | None = None
) -> AbstractInference:
    """The inference called so, with so many sweeps; one that is given as an object is passed on.

    Raises `SettingError` for an unknown name and for sweeps of an inference that makes none.
    """
    if isinstance(inference, AbstractInference):
        if sweeps is not None:
            raise SettingError(
                f"inference_sweeps={sweeps} belongs to an inference given by its name; drop it"
            )
        return inference
    if not isinstance(inference, str) or inference not in INFERENCES:
        raise SettingError(f"no inference is called {inference!r}; choose one of {', '.join(INFERENCES)}")
    if sweeps is None:
        return INFERENCES[inference]()
    if inference == "exact":
        raise SettingError(f"inference_sweeps={sweeps} belongs to mean-field or gibbs, not to exact; drop it")
    return INFERENCES[inference](sweeps=sweeps)


def describe_inference(inference: AbstractInference) -> dict[str, Any] | None:
    """The settings that `build_inference` makes this inference of; None for one put together by hand."""
    sweeps = getattr(inference, "sweeps", None)
    given = {} if sweeps is None else {"sweeps": sweeps}
    for name, kind in INFERENCES.items():
        if type(inference) is kind and inference == kind(**given):
            return {"inference": name} | ({} if sweeps is None else {"inference_sweeps": sweeps})
    return None
