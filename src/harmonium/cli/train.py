"""``harmonium train``: a new run, from settings to a scored model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harmonium.cli.options import Binarize, Data, Force, Json

_MODEL, _SAMPLER, _TRAINING, _RUN = "Model", "Sampler", "Training", "Run"


def train(
    config: Annotated[
        Path | None,
        typer.Argument(
            metavar="CONFIG.toml",
            show_default=False,
            help="Settings, in the sections of a run's config.toml; that of an earlier run will do.",
        ),
    ] = None,
    data: Data = None,
    binarize: Binarize = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="rbm|bm|dbm|dbn",
            help="Restricted (default), any pair of units coupled, a deep Boltzmann machine, or a deep belief network.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    visible: Annotated[
        str | None,
        typer.Option(
            metavar="bernoulli|spin", help="Visible units; default bernoulli.", rich_help_panel=_MODEL
        ),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N]",
            help="Hidden units; default 128. A bm may have 0; of a dbm or dbn every layer, bottom first.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    hidden_units: Annotated[
        str | None,
        typer.Option(
            metavar="bernoulli|spin", help="Kind of hidden units; default bernoulli.", rich_help_panel=_MODEL
        ),
    ] = None,
    labels: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Of a dbm: a softmax layer of K classes on top, trained on the labels of the data.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            metavar="pcd|cd|pt|cast|transitions|deep|exact",
            help="Negative phase: persistent chains (default), chains that restart from the data, parallel tempering "
            "(--set rungs=20, swaps=, schedule=, base=), CAST (ratio=, rungs=, gain=, schedule=, base=), tempered "
            "transitions (rungs=, schedule=, base=), deep tempering of a dbn or dbm (hot=4, order=, guide=16), or the "
            "exact sum.",
            rich_help_panel=_SAMPLER,
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(metavar="K", help="Sweeps per update; default 1.", rich_help_panel=_SAMPLER)
    ] = None,
    chains: Annotated[
        int | None,
        typer.Option(metavar="N", help="Persistent chains; default 100.", rich_help_panel=_SAMPLER),
    ] = None,
    inference: Annotated[
        str | None,
        typer.Option(
            metavar="exact|mean-field|gibbs",
            help="Positive phase: how hidden units follow from the data; default exact, of a dbm mean-field.",
            rich_help_panel=_SAMPLER,
        ),
    ] = None,
    centred: Annotated[
        bool | None,
        typer.Option(
            "--centred/--no-centred",
            help="Take the gradient in centred coordinates; default yes.",
            show_default=False,
            rich_help_panel=_SAMPLER,
        ),
    ] = None,
    mode_assisted: Annotated[
        bool | None,
        typer.Option(
            "--mode-assisted/--no-mode-assisted",
            help="Let the ground state stand for the model's mean now and then (--set solver=descent, "
            "solver_starts=32, probability=0.1, push_scale=0.25); default no.",
            show_default=False,
            rich_help_panel=_SAMPLER,
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(metavar="N", help="Passes through the data.", rich_help_panel=_TRAINING)
    ] = None,
    updates: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Updates, instead of epochs; default 10000.", rich_help_panel=_TRAINING
        ),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(metavar="N", help="Rows per update; default 100.", rich_help_panel=_TRAINING)
    ] = None,
    optimizer: Annotated[
        str | None,
        typer.Option(
            metavar="sgd|adam|...", help="A method of optax; default sgd.", rich_help_panel=_TRAINING
        ),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="First rate; default 0.3 for sgd, 0.01 for others.", rich_help_panel=_TRAINING
        ),
    ] = None,
    final_rate: Annotated[
        float | None,
        typer.Option(metavar="X", help="Rate it falls to linearly; default 0.", rich_help_panel=_TRAINING),
    ] = None,
    momentum: Annotated[
        float | None, typer.Option(metavar="X", help="Of sgd; default 0.", rich_help_panel=_TRAINING)
    ] = None,
    weight_decay: Annotated[
        float | None,
        typer.Option(metavar="X", help="Of the couplings; default 0.", rich_help_panel=_TRAINING),
    ] = None,
    initialize: Annotated[
        bool | None,
        typer.Option(
            "--initialize/--no-initialize",
            help="Start the biases at the marginals of the data; default yes.",
            show_default=False,
            rich_help_panel=_TRAINING,
        ),
    ] = None,
    on_divergence: Annotated[
        str | None,
        typer.Option(
            metavar="stop|halve",
            help="When training comes apart: keep the last good model (default), or go back and halve the rate.",
            rich_help_panel=_TRAINING,
        ),
    ] = None,
    members: Annotated[
        int | None,
        typer.Option(
            metavar="E",
            help="Independent models trained at once, in one program; default 1.",
            rich_help_panel=_TRAINING,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="S", help="Of every draw; default 0.", rich_help_panel=_TRAINING)
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any other setting, such as model.weight_scale=0.1, or greedy=true and joint.updates=5000, levels "
            "first and then all together; above the file, below flags. Can be repeated.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Run folder; default the next number under runs/.", rich_help_panel=_RUN
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> int:
    """Train a model and score it on held-out rows.

    The run is kept in a folder, with checkpoints, so that harmonium resume can go on with it after any interruption.

    harmonium train --data digits --model rbm --hidden 16 --epochs 20 --out runs/digits
    """
    from harmonium.cli.interrupts import interruptible

    flags = {
        "--data": data,
        "--binarize": binarize,
        "--model": model,
        "--visible": visible,
        "--hidden": hidden,
        "--hidden-units": hidden_units,
        "--labels": labels,
        "--sampler": sampler,
        "--steps": steps,
        "--chains": chains,
        "--inference": inference,
        "--centred": centred,
        "--mode-assisted": mode_assisted,
        "--epochs": epochs,
        "--updates": updates,
        "--batch-size": batch_size,
        "--optimizer": optimizer,
        "--learning-rate": learning_rate,
        "--final-rate": final_rate,
        "--momentum": momentum,
        "--weight-decay": weight_decay,
        "--members": members,
        "--seed": seed,
        "--initialize": initialize,
        "--on-divergence": on_divergence,
    }
    with interruptible():
        from harmonium.cli.config import merge
        from harmonium.train.folder import RunFolder

        settings = merge(config, assignments or [], flags)
        if out is not None:
            RunFolder.check_free(out, force=force)  # at once, not after the seconds that loading takes

        from harmonium.cli.training import train_and_conclude

        return train_and_conclude(settings, config, out, force, as_json)
