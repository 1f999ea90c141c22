"""The settings of a run: what may be said, checked where it is said, and the same in TOML, flags and Python."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, ValidationError

from harmonium.errors import SettingError
from harmonium.numerics.whole import LARGEST_SEED

Integer = Annotated[
    int, BeforeValidator(lambda value: int(value) if isinstance(value, np.integer) else value)
]
"""Also an integer of numpy, as loops over arrays give them."""

Count = Annotated[Integer, Field(ge=1, le=2**31 - 1, strict=True)]
"""A number of things, at most what 32 bits hold: they are counted in 32 bits on the device."""

Whole = Annotated[Integer, Field(ge=0, le=LARGEST_SEED, strict=True)]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_ONE, _EACH = "<one>", "<each>"


def _as_list(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


Rate = Annotated[
    Annotated[NotNegative, Tag(_ONE)] | Annotated[list[NotNegative], Tag(_EACH)],
    Discriminator(lambda value: _EACH if isinstance(value, list | tuple) else _ONE),
    BeforeValidator(_as_list),
]
"""A learning rate for all, or one for each member of an ensemble."""

Size = Annotated[Integer, Field(ge=0, le=2**31 - 1, strict=True)]
"""Units of a layer; zero means that there is none."""

Sizes = Annotated[list[Size], BeforeValidator(lambda value: [value] if isinstance(value, int) else value)]
"""Sizes of layers; one number stands for one layer."""


JOINT = ("deep",)
"""Samplers that train all levels of a stack at once."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataConfig(_Section):
    """Where the rows come from: a data name or a path; ``array`` marks rows that were only ever in memory."""

    name: str | None = None
    path: str | None = None
    array: bool | None = None
    binarize: Literal["threshold", "stochastic"] | None = None
    scale: float | list[float] | None = None
    shape: list[Count] | None = None
    called: str | None = None
    fingerprint: str | None = None
    label_fingerprint: str | None = None


class ModelConfig(_Section):
    """What is trained. ``kind`` "custom" marks a model that was given in Python.

    ``guide`` are the hidden layers of the RBMs that propose to a dbm in deep tempering, see `harmonium.GuidedDBM`.
    ``labels`` is the number of classes of a label layer, and ``classes`` what the data call them, in order.
    """

    kind: str = "rbm"
    visible: str = "bernoulli"
    hidden: Sizes = [128]
    hidden_units: str = "bernoulli"
    guide: Sizes | None = None
    weight_scale: NotNegative | None = None
    labels: Annotated[Count, Field(ge=2)] | None = None
    classes: list[int | str] | None = None


class SamplerConfig(_Section):
    """The training rule by its negative phase; a setting left out has the rule's own default."""

    name: str = "pcd"
    steps: Count | None = None
    final_steps: Count | None = None
    chains: Count | None = None
    centred: bool | None = None
    offset_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    burn_in: Whole | None = None
    precision: str | None = None
    inference: str | None = None
    inference_sweeps: Count | None = None
    rungs: Count | None = None
    swaps: str | None = None
    schedule: str | list[float] | None = None
    base: str | None = None
    ratio: Count | None = None
    gain: float | str | None = None
    hot: Whole | None = None
    order: str | None = None


class ModeAssistedConfig(_Section):
    """Whether the rule is assisted by modes, and how; a setting left out has the default of `ModeAssisted`.

    ``solver`` looks for the modes; what it can be told itself begins with ``solver_``.
    """

    enabled: bool | None = None
    probability: Annotated[float, Field(ge=0, le=1)] | None = None
    steepness: Annotated[float, Field(allow_inf_nan=False)] | None = None
    offset: Annotated[float, Field(allow_inf_nan=False)] | None = None
    push_scale: NotNegative | None = None
    push: NotNegative | None = None
    baseline_steps: Count | None = None
    solver: str | None = None
    solver_starts: Count | None = None
    solver_chains: Count | None = None
    solver_sweeps: Count | None = None
    solver_steps: Count | None = None
    solver_hottest: float | None = None
    solver_coldest: float | None = None
    solver_cap: float | None = None
    solver_alpha: float | None = None
    solver_beta: float | None = None
    solver_gamma: float | None = None
    solver_delta: float | None = None
    solver_zeta: float | None = None
    solver_bit_budget: Whole | None = None
    solver_nodes: Count | None = None


class TrainConfig(_Section):
    """How long and how fast. Without ``epochs`` or ``updates`` a run makes 10 000 updates.

    ``greedy`` trains the levels of a dbn or a dbm one after the other, which for a dbn is the default with every
    sampler that is not of stacks; ``levels`` and ``transposed`` are of that, see `harmonium.fit_greedy`.
    """

    epochs: Count | None = None
    updates: Count | None = None
    batch_size: Count = 100
    optimizer: str = "sgd"
    learning_rate: Rate | None = None
    final_rate: Rate | None = None
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    weight_decay: NotNegative = 0.0
    members: Count | None = None
    seed: Whole = 0
    initialize: bool = True
    greedy: bool | None = None
    levels: Count | None = None
    transposed: bool | None = None
    stop_on_decrease: bool | None = None
    on_divergence: Literal["stop", "halve"] = "stop"
    checkpoint_seconds: NotNegative = 30.0


class JointConfig(SamplerConfig):
    """A training of all levels together that follows a greedy one: its rule, and what differs from the levels' [train].

    What is left out of the second part is as it was for the levels.
    """

    epochs: Count | None = None
    updates: Count | None = None
    batch_size: Count | None = None
    optimizer: str | None = None
    learning_rate: NotNegative | None = None
    final_rate: NotNegative | None = None
    momentum: Annotated[float, Field(ge=0, lt=1)] | None = None
    weight_decay: NotNegative | None = None


class RunConfig(_Section):
    """All settings of a run, in the sections of its ``config.toml``."""

    data: DataConfig = DataConfig()
    model: ModelConfig = ModelConfig()
    sampler: SamplerConfig = SamplerConfig()
    mode_assisted: ModeAssistedConfig = ModeAssistedConfig()
    train: TrainConfig = TrainConfig()
    joint: JointConfig | None = None

    @property
    def is_greedy(self) -> bool:
        """Whether the levels of a stack are trained one after the other, and not jointly."""
        if self.train.greedy is not None:
            return self.train.greedy
        return self.model.kind == "dbn" and self.sampler.name not in JOINT

    @property
    def guide(self) -> list[int] | None:
        """Hidden layers of the guide of a dbm: those of the settings, or, by deep tempering, one like its top layer."""
        if self.model.guide is None and self.model.kind == "dbm" and self.sampler.name in JOINT:
            return list(self.model.hidden[-1:])
        return self.model.guide

    def to_dict(self) -> dict[str, Any]:
        """Plain values in sections; settings that are None are left out, and the modes of a rule without any."""
        values = self.model_dump(exclude_none=True)
        return {name: section for name, section in values.items() if section or name != "mode_assisted"}


def read_settings(settings: Mapping[str, Any]) -> RunConfig:
    """Check settings in sections.

    Raises `SettingError` that names the first fault, its value, and for an unknown key the nearest known one.
    """
    try:
        config = RunConfig.model_validate(dict(settings))
    except ValidationError as error:
        raise SettingError(_first_fault(error)) from None
    for asked in (config.train, config.joint):
        if asked is not None and asked.epochs is not None and asked.updates is not None:
            raise SettingError(
                f"both epochs={asked.epochs} and updates={asked.updates} are given; keep one of them"
            )
    if config.train.stop_on_decrease and (config.train.members or 1) > 1:
        raise SettingError(
            f"stop_on_decrease is of a single model, got members={config.train.members}; leave one of them out"
        )
    for name, rates in (
        ("learning_rate", config.train.learning_rate),
        ("final_rate", config.train.final_rate),
    ):
        if isinstance(rates, list) and (
            config.train.members in (None, 1) or len(rates) != config.train.members
        ):
            raise SettingError(
                f"{name} has {len(rates)} numbers, one for each member, but members={config.train.members or 1}; "
                "give one number for all, or one for each member"
            )
    if config.model.guide is not None and config.model.kind not in ("dbm", "custom"):
        raise SettingError(
            f"model.guide={config.model.guide} is of a dbm, whose even layers it proposes, got a {config.model.kind}; "
            "leave it out, or use model.kind='dbm' (--model)"
        )
    if 0 in (config.model.guide or ()) or config.model.guide == []:
        raise SettingError(
            f"model.guide={config.model.guide} cannot be used: a guide has hidden units; pass e.g. 16"
        )
    given = config.mode_assisted.model_dump(exclude_none=True)
    if given and not given.pop("enabled", False):
        for name, value in given.items():
            raise SettingError(
                f"mode_assisted.{name}={value} is of mode-assisted training, which is not asked for; add "
                "--mode-assisted (enabled under mode_assisted), or leave it out"
            )
    if config.model.kind in ("rbm", "dbm", "dbn") and 0 in config.model.hidden:
        place = config.model.hidden.index(0)
        article = "an" if config.model.kind == "rbm" else "a"
        raise SettingError(
            f"model.hidden.{place}=0 cannot be used: {article} {config.model.kind} has hidden units; pass e.g. "
            "16, or model.kind='bm' (--model)"
        )
    return config


def check_levels(config: RunConfig) -> None:
    """Raise `SettingError` for settings of levels that would do nothing in a new run, or contradict its sampler."""
    if config.train.greedy and config.sampler.name in JOINT:
        raise SettingError(
            f"{config.sampler.name} trains all levels of a network at once, and not one after the other (greedy=true); "
            "leave that out (--set greedy=, or hm.fit in Python), or use sampler='pcd' (--sampler)"
        )
    for key in ("levels", "transposed"):
        value = getattr(config.train, key)
        if value is not None and not config.is_greedy:
            raise SettingError(
                f"{key}={value} is of networks that are trained level by level, but {config.sampler.name} trains this "
                f"{config.model.kind} as a whole; leave it out"
            )
    if config.joint is not None and not config.is_greedy:
        raise SettingError(
            f"[joint] is of networks that are trained level by level first, but this {config.model.kind} is trained as "
            "a whole; leave it out, or ask for levels with greedy=true (--set greedy=true) and a dbm or a dbn"
        )


def known_settings() -> dict[str, list[str]]:
    """The keys of every section."""
    sections = (DataConfig, ModelConfig, SamplerConfig, ModeAssistedConfig, TrainConfig, JointConfig)
    return {
        name: list(section.model_fields)
        for name, section in zip(RunConfig.model_fields, sections, strict=True)
    }


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    place = [str(part) for part in fault["loc"] if part not in (_ONE, _EACH)]
    name = ".".join(place)
    if fault["type"] == "extra_forbidden":
        known = known_settings()
        choices = list(known) if len(place) == 1 else known.get(place[0], [])
        nearest = difflib.get_close_matches(place[-1], choices, 1, 0.5)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"known here: {', '.join(choices)}"
        return f"there is no setting {name!r}; {hint}"
    return f"{name}={fault['input']!r} cannot be used: {_problem(fault['type'], fault.get('ctx', {}), fault['msg'])}"


_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "list": "a list, such as [32, 16]",
}


def _problem(kind: str, context: Mapping[str, Any], message: str) -> str:
    """What is wrong with a value, in words that say what would be right."""
    for bound, words in _BOUNDS.items():
        if bound in context:
            return f"it must be {words} {context[bound]:.15g}"
    if "expected" in context:
        return f"it must be {context['expected']}"
    what = _KINDS.get(kind.partition("_")[0])
    return f"it must be {what}" if what else message[0].lower() + message[1:]
