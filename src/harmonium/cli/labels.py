"""What the verbs say of labels: how well rows are classified, and which class is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonium.cli.sources import Opened
from harmonium.data.base import DataSet
from harmonium.data.labels import has_labels
from harmonium.energy.base import AbstractEnergyModel
from harmonium.energy.dbm import DBM
from harmonium.energy.ensemble import Ensemble
from harmonium.energy.labels import label_units
from harmonium.errors import DataError, SettingError
from harmonium.evaluate.classify import Classification, classify
from harmonium.evaluate.ensemble import band


@dataclass(frozen=True)
class Classified:
    """The classification by one model, or by every member of an ensemble."""

    of_each: tuple[Classification, ...]

    @property
    def errors(self) -> list[float]:
        """The fraction of rows that each of them gets wrong."""
        return [one.error for one in self.of_each if one.error is not None]

    def to_dict(self) -> dict[str, Any]:
        """As JSON: of an ensemble the median error, its band, and the errors of all."""
        first = self.of_each[0].to_dict()
        if len(self.of_each) == 1:
            return first
        found = band(self.errors)
        errors = {
            "error": found.median,
            "band": {"low": found.low, "high": found.high},
            "errors": self.errors,
        }
        return {**first, "error_stderr": None, **errors}

    def in_words(self, split: str) -> str:
        """A line for people."""
        first = self.of_each[0]
        if len(self.of_each) == 1:
            return f"{split} classification: {first}"
        found = band(self.errors)
        return (
            f"{split} classification by {first.method} ({first.kind}): {100 * found.median:.2f} % wrong of {first.n}, "
            f"the median of {len(self.of_each)} members; 5-95 % of the members: {100 * found.low:.2f} to "
            f"{100 * found.high:.2f} %"
        )


def classification_of(opened: Opened, data: DataSet, split: str, method: str | None) -> Classified | None:
    """How well a model classifies the rows of a split; None for one without labels, and for rows without any.

    **Raises** SettingError where a method is asked of a model without labels, DataError of rows without any.
    """
    model = opened.model
    members = (
        [member for member in model if isinstance(member, DBM)] if isinstance(model, Ensemble) else [model]
    )
    labelled = [member for member in members if isinstance(member, DBM) and label_units(member) is not None]
    if not labelled:
        if method is not None:
            raise SettingError(
                f"--classify {method} is of models with labels, and this one has none; leave it out, or train one with "
                "--model dbm --labels 10"
            )
        return None
    if not has_labels(data, split):
        if method is not None:
            raise DataError(
                f"the {split} rows of {data.name} have no labels to compare with; leave --classify out"
            )
        return None
    classes = None if opened.config is None else opened.config.model.classes
    found = tuple(classify(one, data, method or "auto", split=split, classes=classes) for one in labelled)
    return Classified(found) if all(one.error is not None for one in found) else None


def class_number(model: AbstractEnergyModel, classes: list[int | str] | None, label: str) -> int:
    """The number of the class that is called ``label``, or counted so where no names are known.

    **Raises** SettingError for a model without labels and a class that it does not have.
    """
    units = label_units(model)
    if units is None:
        raise SettingError(
            f"--label {label} is of models with labels, and this one has none; leave it out, or train one with "
            "--model dbm --labels 10"
        )
    names = [str(name) for name in (classes or range(units.states))]
    if label not in names:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise SettingError(f"--label {label} is no class of this model; choose one of {shown}")
    return int(np.flatnonzero(np.asarray(names) == label)[0])
