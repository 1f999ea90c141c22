"""``harmonium inspect``: what a run, a model file, a data file or a data name holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from harmonium.cli.options import Json, Member


def inspect(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH|NAME",
            help="A run folder, a model file, a data file, or a data name such as digits.",
        ),
    ],
    member: Member = None,
    as_json: Json = False,
) -> int:
    """Say what a run, a model or a data set holds.

    Of a run: its settings, how far it is, and how good. Of data: whether they are fit to train on. Of a data name: also
    the parameters it takes.
    """
    from harmonium.cli.output import put, put_json
    from harmonium.data.names import is_data_name

    place = Path(path)
    if member is not None:
        values, text = _member(place, member)
    elif is_data_name(path):
        values, text = _data_name(path)
    elif place.is_dir():
        values, text = _run(place)
    elif place.suffix.lower() == ".safetensors":
        values, text = _model(place)
    else:
        values, text = _data(path)
    if as_json:
        put_json(values)
    else:
        put(text)
    return 0


def _data_name(name: str) -> tuple[dict[str, Any], str]:
    from harmonium.cli.failure import in_flags
    from harmonium.data.load import load_data
    from harmonium.data.names import data_parameters, describe_name

    data = load_data(name)
    parameters = [
        {"name": part.name, "type": part.kind.__name__, "default": part.default, "meaning": part.meaning}
        for part in data_parameters(name)
    ]
    return (
        {"holds": "data", **data.summary(), "parameters": parameters},
        f"{describe_name(name)}\n\n{in_flags(data.describe())}",
    )


def _data(path: str) -> tuple[dict[str, Any], str]:
    from harmonium.cli.failure import in_flags
    from harmonium.data.load import load_data
    from harmonium.errors import FileError
    from harmonium.train.folder import KNOWN_FILES

    run = Path(path).parent
    if Path(path).name in KNOWN_FILES and (run / "config.toml").is_file() and Path(path).is_file():
        raise FileError(f"{path} is a part of the run in {run}; inspect that folder")
    data = load_data(path)
    text = in_flags(data.describe())
    if data.columns is not None:
        shown = ", ".join(data.columns[:8]) + (", ..." if len(data.columns) > 8 else "")
        text += f"\ncolumns {shown}"
    return {"holds": "data", **data.summary()}, text


def _model(path: Path) -> tuple[dict[str, Any], str]:
    from harmonium.cli.cache import keep_compiled_programs
    from harmonium.cli.sources import refuse_networks
    from harmonium.report.summaries import parts_of, summarise_model
    from harmonium.train.model_file import load_described

    keep_compiled_programs()
    model, about = load_described(path)
    refuse_networks(model, path)
    summary = {**summarise_model(model), "parts": parts_of(model)}
    text = _model_text(summary)
    if about:
        text += f"\nof a run, after {about.get('updates')} of {about.get('horizon')} updates"
    return {"holds": "model", **summary, "about": about}, text


def _member(path: Path, member: int) -> tuple[dict[str, Any], str]:
    from harmonium.cli.cache import keep_compiled_programs
    from harmonium.cli.sources import open_model
    from harmonium.report.summaries import parts_of, summarise_model

    keep_compiled_programs()
    opened = open_model(path, member)
    summary = {**summarise_model(opened.model), "parts": parts_of(opened.model)}
    text = f"member {member}: {_model_text(summary)}"
    if opened.doubt:
        text += f"\nnot to be trusted: {opened.doubt}"
    return {"holds": "model", "member": member, **summary, "reason": opened.doubt}, text


def _run(path: Path) -> tuple[dict[str, Any], str]:
    from harmonium.cli.cache import keep_compiled_programs
    from harmonium.report.summaries import summarise_run

    keep_compiled_programs()
    summary = summarise_run(path)
    return {"holds": "run", **summary}, _run_text(summary)


def _model_text(summary: dict[str, Any]) -> str:
    layers = " - ".join(f"{layer['size']} {layer['units']}" for layer in summary["layers"])
    article = "an" if summary["kind"] == "RBM" else "a"
    whose = f"ensemble of {summary['members']}, each {article} " if "members" in summary else ""
    lines = [
        f"{whose}{summary['kind']} of {layers} units, {summary['parameters']} parameters, {summary['dtype']}"
    ]
    for part in summary["parts"]:
        where = f"layer {part['layer']}" if "layer" in part else f"{part['pairs']} pairs"
        weights = (
            "no weights"
            if part["weight_rms"] is None
            else f"weights {part['weight_low']:.3g} to {part['weight_high']:.3g}, root mean square "
            f"{part['weight_rms']:.3g}"
        )
        lines.append(f"{where}: {weights}; biases {part['bias_low']:.3g} to {part['bias_high']:.3g}")
        for name, meaning in (
            ("constant", "have the same value whatever the layer below is"),
            ("unused", "are hardly moved by the layer below"),
        ):
            if part.get(name):
                shown = ", ".join(map(str, part[name][:12])) + (", ..." if len(part[name]) > 12 else "")
                lines.append(f"layer {part['layer']}: {len(part[name])} units {meaning}: {shown}")
        if not part["finite"]:
            lines.append(f"{where}: holds numbers that are not finite; this model is broken")
    return "\n".join(lines)


def _run_text(summary: dict[str, Any]) -> str:
    from harmonium.cli.failure import in_flags
    from harmonium.cli.progress import metric_of

    done = f"{summary['updates']} of {summary['horizon']} updates"
    if not summary["reliable"]:
        state = f"stopped by the divergence guard after {done}: {in_flags(summary['reason'])}"
    elif summary["finished"]:
        state = f"finished, {done}"
    else:
        state = f"not finished, {done} saved; harmonium resume {summary['path']} goes on"
    lines = [f"run {summary['path']}: {state}"]
    if summary["metrics"]:
        lines.append(f"last report: {metric_of(summary['metrics'])}")
    lines.append(_model_text(summary["model"]))
    for section, values in summary["settings"].items():
        shown = ", ".join(f"{key} = {value}" for key, value in values.items())
        lines.append(f"[{section}] {shown}")
    lines += [f"changed since it began: {change}" for change in summary["environment_changes"]]
    if summary["samples"]:
        lines.append(f"samples: {summary['samples']}")
    return "\n".join(lines)
