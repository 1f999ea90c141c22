"""The same PCD-1 update by others: scikit-learn, numpy, torch, rbms and learnergy.

numpy and torch are loops written here, as a good user of either would write them; the others are their own libraries'
calls. What is not installed (``pip install '.[bench]'``) is left out, with a line that says so.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from protocol import Contestant

RATE = 0.01


def peers(rows: np.ndarray, hidden: int, batch: int, updates: int, slow_updates: int) -> list[Contestant]:
    """Every peer that is installed; ``slow_updates`` is how many those make that take a multiple of the time."""
    found: list[Contestant] = [
        sklearn_fit(rows, hidden, batch, updates),
        numpy_loop(rows, hidden, batch, updates),
    ]
    optional: list[tuple[str, Callable[..., Contestant], int]] = [
        ("torch", torch_loop, updates),
        ("rbms", rbms_loop, slow_updates),
        ("learnergy", learnergy_fit, slow_updates),
    ]
    for name, build, count in optional:
        if find_spec("torch") is None or find_spec(name) is None:
            print(f"{name} is not installed, so it is left out: pip install '.[bench]'")
            continue
        found.append(build(rows, hidden, batch, count))
    return found


def sklearn_fit(rows: np.ndarray, hidden: int, batch: int, updates: int) -> Contestant:
    """``BernoulliRBM.fit`` on as many rows as give whole epochs."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import BernoulliRBM

    per_epoch = len(rows) // batch
    epochs = max(1, updates // per_epoch)
    single = rows[: per_epoch * batch].astype(np.float32)

    def run() -> None:
        machine = BernoulliRBM(hidden, learning_rate=RATE, batch_size=batch, n_iter=epochs, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(single)

    return Contestant("scikit-learn", run, epochs * per_epoch)


def numpy_loop(rows: np.ndarray, hidden: int, batch: int, updates: int) -> Contestant:
    """Float32 matrices, one generator, everything in place that can be."""
    visible = rows.shape[1]

    def logistic(field: np.ndarray) -> np.ndarray:
        np.negative(field, out=field)
        np.exp(field, out=field)
        field += 1
        return np.reciprocal(field, out=field)

    def run() -> None:
        generator = np.random.Generator(np.random.SFC64(0))
        weights = 0.01 * generator.standard_normal((hidden, visible), np.float32)
        visible_bias, hidden_bias = np.zeros(visible, np.float32), np.zeros(hidden, np.float32)
        chains = np.zeros((batch, hidden), np.float32)
        scale = np.float32(RATE / batch)
        order = generator.permutation(len(rows))
        for update in range(updates):
            start = update * batch % (len(rows) - batch + 1)
            data = rows[order[start : start + batch]].astype(np.float32)
            mean = logistic(chains @ weights + visible_bias)
            fantasy = (generator.random(mean.shape, np.float32) < mean).astype(np.float32)
            negative = logistic(fantasy @ weights.T + hidden_bias)
            chains = (generator.random(negative.shape, np.float32) < negative).astype(np.float32)
            positive = logistic(data @ weights.T + hidden_bias)
            step = positive.T @ data
            step -= negative.T @ fantasy
            step *= scale
            weights += step
            visible_bias += scale * (data.sum(axis=0) - fantasy.sum(axis=0))
            hidden_bias += scale * (positive.sum(axis=0) - negative.sum(axis=0))

    return Contestant("numpy", run, updates)


def torch_loop(rows: np.ndarray, hidden: int, batch: int, updates: int) -> Contestant:
    """Eager torch without autograd."""
    import torch

    torch.set_num_threads(1)
    data_rows = torch.from_numpy(rows)
    visible = rows.shape[1]

    def run() -> None:
        torch.manual_seed(0)
        weights = 0.01 * torch.randn(hidden, visible)
        visible_bias, hidden_bias = torch.zeros(visible), torch.zeros(hidden)
        chains = torch.zeros(batch, hidden)
        scale = RATE / batch
        order = torch.randperm(len(rows))
        with torch.no_grad():
            for update in range(updates):
                start = update * batch % (len(rows) - batch + 1)
                data = data_rows[order[start : start + batch]].float()
                fantasy = torch.bernoulli(torch.sigmoid(torch.addmm(visible_bias, chains, weights)))
                negative = torch.sigmoid(torch.addmm(hidden_bias, fantasy, weights.T))
                chains = torch.bernoulli(negative)
                positive = torch.sigmoid(torch.addmm(hidden_bias, data, weights.T))
                weights.addmm_(positive.T, data, alpha=scale)
                weights.addmm_(negative.T, fantasy, alpha=-scale)
                visible_bias += scale * (data.sum(0) - fantasy.sum(0))
                hidden_bias += scale * (positive.sum(0) - negative.sum(0))

    return Contestant("torch, eager", run, updates)


def rbms_loop(rows: np.ndarray, hidden: int, batch: int, updates: int) -> Contestant:
    """The inner step of rbms' own training loop (one sweep, centred as it does by default), without its files."""
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.training.pcd import fit_batch_pcd

    torch.set_num_threads(1)
    data_rows = torch.from_numpy(rows)
    visible = rows.shape[1]

    def run() -> None:
        torch.manual_seed(0)
        machine = BBRBM(0.01 * torch.randn(visible, hidden), torch.zeros(visible), torch.zeros(hidden))
        optimizer = torch.optim.SGD(machine.parameters(), lr=RATE, maximize=True)
        for parameter in machine.parameters():
            parameter.grad = torch.zeros_like(parameter)
        chains = machine.init_chains(batch)
        weight = torch.ones(batch)
        with torch.no_grad():
            for _ in range(updates):
                chosen = torch.randperm(len(rows))[:batch]
                optimizer.zero_grad(set_to_none=False)
                chains, _ = fit_batch_pcd((data_rows[chosen].float(), weight), chains, machine, 1, 1.0)
                optimizer.step()

    return Contestant("rbms, inner step", run, updates)


def learnergy_fit(rows: np.ndarray, hidden: int, batch: int, updates: int) -> Contestant:
    """``RBM.fit`` of learnergy (CD-1, which is what it has), silenced."""
    import torch

    with contextlib.redirect_stdout(io.StringIO()):
        from learnergy.models.bernoulli import RBM
    logging.disable(logging.INFO)
    torch.set_num_threads(1)
    used = torch.from_numpy(rows[: min(len(rows), updates * batch)].astype(np.float32))
    data = torch.utils.data.TensorDataset(used, torch.zeros(len(used)))
    per_epoch = -(-len(used) // batch)
    epochs = max(1, updates // per_epoch)

    def run() -> None:
        torch.manual_seed(0)
        machine = RBM(rows.shape[1], hidden, steps=1, learning_rate=RATE)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            machine.fit(data, batch_size=batch, epochs=epochs)

    return Contestant("learnergy", run, epochs * per_epoch)
