"""The median member and the band, and that members are scored as they are alone."""

import math

import numpy as np
import pytest

import harmonium as hm
from harmonium.evaluate import ensemble as members
from harmonium.evaluate.ensemble import Band, band, exact_log_partitions, unnormalised_log_probabilities

RNG = np.random.default_rng(0)
MODELS = [
    hm.RBM.from_arrays(2 * RNG.normal(size=(5, 4)), RNG.normal(size=5), RNG.normal(size=4)) for _ in range(5)
]
ROWS = RNG.integers(0, 2, (11, 5))


@pytest.mark.parametrize(
    ("count", "wanted"),
    [
        (1, Band(0, 0, 0)),
        (2, Band(0, 0, 1)),
        (20, Band(9, 0, 19)),
        (21, Band(10, 1, 19)),
        (50, Band(24, 2, 47)),
        (100, Band(49, 4, 95)),
    ],
)
def test_a_band_leaves_out_less_than_a_twentieth_at_either_end(count: int, wanted: Band) -> None:
    values = RNG.permutation(count).astype(float)
    found = band(values)
    assert found == wanted
    assert (values < found.low).sum() < 0.05 * count
    assert (values > found.high).sum() < 0.05 * count


def test_numbers_that_are_none_are_left_out_of_a_band() -> None:
    assert band([math.nan, 2.0, 1.0, 3.0]) == Band(2, 1, 3)
    assert math.isnan(band([math.nan]).median)


@pytest.mark.parametrize("bits_of_one_call", [13, 0])
def test_exact_sums_are_those_of_every_member(bits_of_one_call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one compiled call and in one call each."""
    monkeypatch.setattr(members, "_BITS_OF_ONE_CALL", bits_of_one_call)
    stacked = hm.Ensemble.of(MODELS).stacked
    wanted = [hm.log_partition(model).value for model in MODELS]
    np.testing.assert_allclose(exact_log_partitions(stacked), wanted, rtol=1e-13)
    rows = np.tile(ROWS, (500, 1))
    scores = unnormalised_log_probabilities(stacked, rows)
    assert scores.shape == (5, 5500)
    for model, own, log_partition in zip(MODELS, scores, wanted, strict=True):
        alone = hm.log_likelihood(model, rows, rows=True).value
        np.testing.assert_allclose(own - log_partition, alone, rtol=1e-12)


def test_the_median_member_speaks_for_all() -> None:
    alone = [hm.log_likelihood(model, ROWS) for model in MODELS]
    found = hm.log_likelihood(hm.Ensemble.of(MODELS), ROWS)
    median = int(np.argsort([estimate.value for estimate in alone])[2])
    assert found.member == median
    assert found.value == alone[median].value
    assert found.row_stderr == alone[median].row_stderr
    assert [estimate.value for estimate in found.members] == [estimate.value for estimate in alone]
    by_row = hm.log_likelihood(hm.Ensemble.of(MODELS), ROWS, rows=True)
    assert by_row.member == median
    assert len(by_row) == len(ROWS)
    partition = hm.log_partition(hm.Ensemble.of(MODELS))
    assert partition.value == np.median([hm.log_partition(model).value for model in MODELS])


def test_a_stopped_member_is_not_the_median_and_not_to_be_trusted() -> None:
    ensemble = hm.Ensemble.of(MODELS)
    best = hm.log_likelihood(ensemble, ROWS).member
    assert best is not None
    faults = ["" if number != best else "diverged early" for number in range(5)]
    found = hm.log_likelihood(hm.Ensemble(ensemble.stacked, faults), ROWS)
    assert found.member != best
    assert found.reliable
    assert [estimate.reliable for estimate in found.members] == [number != best for number in range(5)]
    assert found.members[best].reason == "its training diverged early"
