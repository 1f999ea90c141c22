"""The studies by name: what ``harmonium reproduce`` may say."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from harmonium.errors import SettingError
from harmonium.studies.base import AbstractStudy
from harmonium.studies.dbm_classifier import DbmClassifier
from harmonium.studies.deep_tempering import DeepTemperingStudy
from harmonium.studies.mode_assisted import ModeAssistedStudy
from harmonium.studies.sampling_race import SamplingRace

STUDIES: Mapping[str, AbstractStudy] = MappingProxyType(
    {
        study.name: study
        for study in (SamplingRace(), DeepTemperingStudy(), DbmClassifier(), ModeAssistedStudy())
    }
)


def find_study(name: str) -> AbstractStudy:
    """The study of this name. Raises `SettingError` for a name that is not known.

    >>> find_study("sampling-race").name
    'sampling-race'
    """
    if name not in STUDIES:
        raise SettingError(f"no study is called {name!r}; choose one of {', '.join(STUDIES)}")
    return STUDIES[name]
