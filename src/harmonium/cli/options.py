"""Options that several verbs share, so that they are called and explained alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output and nothing else.")
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Replace an output that is there already.")]
Source: TypeAlias = Annotated[
    Path, typer.Argument(metavar="RUN|MODEL", help="A run folder, or a model file (.safetensors).")
]
Member: TypeAlias = Annotated[
    int | None,
    typer.Option("--member", metavar="I", help="Of an ensemble: this member alone, counted from 0."),
]
Data: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="NAME|PATH",
        help="digits, mnist-5k, bars-and-stripes:side=4, shifting-bars:length=24, artificial-modes, "
        "planted:clusters=8, or a .npy, .npz or .csv file; harmonium inspect NAME lists what a name takes.",
        rich_help_panel="Data",
    ),
]
Binarize: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--binarize",
        metavar="threshold|stochastic",
        help="How grey data become binary: cut at half of full scale, or drawn afresh in every epoch.",
        rich_help_panel="Data",
    ),
]
