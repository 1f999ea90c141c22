"""Boltzmann machines in JAX, with likelihoods that carry their error and runs that are never lost.

This file is the complete public list; every name is imported when it is first used, so that ``import harmonium``
costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_PUBLIC = {
    "RBM": "harmonium.energy.rbm",
    "DBM": "harmonium.energy.dbm",
    "DBN": "harmonium.energy.dbn",
    "GuidedDBM": "harmonium.energy.guided_dbm",
    "BoltzmannMachine": "harmonium.energy.boltzmann",
    "Ensemble": "harmonium.energy.ensemble",
    "Bernoulli": "harmonium.units.bernoulli",
    "Spin": "harmonium.units.spin",
    "Categorical": "harmonium.units.categorical",
    "CD": "harmonium.rules.contrastive",
    "PCD": "harmonium.rules.contrastive",
    "ExactGradient": "harmonium.rules.likelihood",
    "ModeAssisted": "harmonium.rules.mode_assisted",
    "fit": "harmonium.train.fit",
    "fit_greedy": "harmonium.train.greedy",
    "resume": "harmonium.train.fit",
    "Unrolled": "harmonium.train.unrolled",
    "fine_tune": "harmonium.train.finetune",
    "member_seed": "harmonium.train.ensemble",
    "load_run": "harmonium.train.rebuild",
    "Run": "harmonium.train.run",
    "save": "harmonium.train.model_file",
    "load": "harmonium.train.model_file",
    "AIS": "harmonium.evaluate.ais",
    "Bound": "harmonium.evaluate.bounds",
    "Bracket": "harmonium.evaluate.bracket",
    "log_likelihood": "harmonium.evaluate.likelihood",
    "log_partition": "harmonium.evaluate.likelihood",
    "moments": "harmonium.evaluate.moments",
    "exact_gradient": "harmonium.evaluate.moments",
    "mode_weights": "harmonium.evaluate.moments",
    "estimate_beta": "harmonium.evaluate.temperature",
    "gradient_from_samples": "harmonium.evaluate.sampled_gradient",
    "to_spin": "harmonium.energy.conventions",
    "to_binary": "harmonium.energy.conventions",
    "pseudo_likelihood": "harmonium.evaluate.proxies",
    "reconstruction_error": "harmonium.evaluate.proxies",
    "raise_likelihood": "harmonium.evaluate.raise_proxy",
    "classify": "harmonium.evaluate.classify",
    "Classification": "harmonium.evaluate.classify",
    "Estimate": "harmonium.evaluate.estimate",
    "ParallelTempering": "harmonium.samplers.tempering",
    "CAST": "harmonium.samplers.cast",
    "TemperedTransitions": "harmonium.samplers.transitions",
    "diagnose": "harmonium.samplers.diagnostics",
    "mode_jumps": "harmonium.samplers.jumps",
    "DeepTempering": "harmonium.samplers.deep_tempering",
    "sample": "harmonium.samplers.sample",
    "DataSet": "harmonium.data.base",
    "load_data": "harmonium.data.load",
    "figure": "harmonium.report.drawing",
    "HarmoniumError": "harmonium.errors",
    "HarmoniumWarning": "harmonium.errors",
}

_ROOMS = ("modes", "interop")
"""Packages that are public as they are: ``hm.modes.find``, ``hm.interop.dimod.to_bqm``."""

__all__ = [*_PUBLIC, *_ROOMS]  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from harmonium import interop as interop
    from harmonium import modes as modes
    from harmonium.data.base import DataSet as DataSet
    from harmonium.data.load import load_data as load_data
    from harmonium.energy.boltzmann import BoltzmannMachine as BoltzmannMachine
    from harmonium.energy.conventions import to_binary as to_binary
    from harmonium.energy.conventions import to_spin as to_spin
    from harmonium.energy.dbm import DBM as DBM
    from harmonium.energy.dbn import DBN as DBN
    from harmonium.energy.ensemble import Ensemble as Ensemble
    from harmonium.energy.guided_dbm import GuidedDBM as GuidedDBM
    from harmonium.energy.rbm import RBM as RBM
    from harmonium.errors import HarmoniumError as HarmoniumError
    from harmonium.errors import HarmoniumWarning as HarmoniumWarning
    from harmonium.evaluate.ais import AIS as AIS
    from harmonium.evaluate.bounds import Bound as Bound
    from harmonium.evaluate.bracket import Bracket as Bracket
    from harmonium.evaluate.classify import Classification as Classification
    from harmonium.evaluate.classify import classify as classify
    from harmonium.evaluate.estimate import Estimate as Estimate
    from harmonium.evaluate.likelihood import log_likelihood as log_likelihood
    from harmonium.evaluate.likelihood import log_partition as log_partition
    from harmonium.evaluate.moments import exact_gradient as exact_gradient
    from harmonium.evaluate.moments import mode_weights as mode_weights
    from harmonium.evaluate.moments import moments as moments
    from harmonium.evaluate.proxies import pseudo_likelihood as pseudo_likelihood
    from harmonium.evaluate.proxies import reconstruction_error as reconstruction_error
    from harmonium.evaluate.raise_proxy import raise_likelihood as raise_likelihood
    from harmonium.evaluate.sampled_gradient import gradient_from_samples as gradient_from_samples
    from harmonium.evaluate.temperature import estimate_beta as estimate_beta
    from harmonium.report.drawing import figure as figure
    from harmonium.rules.contrastive import CD as CD
    from harmonium.rules.contrastive import PCD as PCD
    from harmonium.rules.likelihood import ExactGradient as ExactGradient
    from harmonium.rules.mode_assisted import ModeAssisted as ModeAssisted
    from harmonium.samplers.cast import CAST as CAST
    from harmonium.samplers.deep_tempering import DeepTempering as DeepTempering
    from harmonium.samplers.diagnostics import diagnose as diagnose
    from harmonium.samplers.jumps import mode_jumps as mode_jumps
    from harmonium.samplers.sample import sample as sample
    from harmonium.samplers.tempering import ParallelTempering as ParallelTempering
    from harmonium.samplers.transitions import TemperedTransitions as TemperedTransitions
    from harmonium.train.ensemble import member_seed as member_seed
    from harmonium.train.finetune import fine_tune as fine_tune
    from harmonium.train.fit import fit as fit
    from harmonium.train.fit import resume as resume
    from harmonium.train.greedy import fit_greedy as fit_greedy
    from harmonium.train.model_file import load as load
    from harmonium.train.model_file import save as save
    from harmonium.train.rebuild import load_run as load_run
    from harmonium.train.run import Run as Run
    from harmonium.train.unrolled import Unrolled as Unrolled
    from harmonium.units.bernoulli import Bernoulli as Bernoulli
    from harmonium.units.categorical import Categorical as Categorical
    from harmonium.units.spin import Spin as Spin


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"harmonium.{name}")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'harmonium' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC, *_ROOMS})
