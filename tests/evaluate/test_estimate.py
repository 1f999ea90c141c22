"""How errors add, and what an estimate gives away of itself."""

import math

import numpy as np
import pytest

from harmonium.evaluate import likelihood
from harmonium.evaluate.estimate import Estimate


def test_a_weighted_mean_and_its_error_over_rows() -> None:
    scores = np.array([-1.0, -4.0, -2.0, -2.5])
    plain = likelihood.mean_over_rows(scores)
    alike = likelihood.mean_over_rows(scores, np.full(4, 7.0))
    assert alike.value == pytest.approx(plain.value, rel=1e-14)
    assert alike.row_stderr == pytest.approx(plain.row_stderr, rel=1e-14)
    assert plain.row_stderr == pytest.approx(scores.std(ddof=1) / 2, rel=1e-14)
    weight = np.array([1.0, 2.0, 0.0, 1e-9])
    weighted = likelihood.mean_over_rows(scores, weight)
    assert weighted.value == pytest.approx(-3.0, abs=1e-8)
    # Two rows of shares 1/3 and 2/3, which are worth 9/5 rows.
    assert weighted.row_stderr == pytest.approx(math.sqrt((4 / 9 + 4 / 9) / (1 - 5 / 9)), abs=1e-8)
    assert math.isnan(likelihood.mean_over_rows(scores, np.array([0.0, 1.0, 0.0, 0.0])).row_stderr)


def test_errors_over_rows_add_in_squares_too() -> None:
    """A difference of two means over rows is not as sure as one of them."""
    one, other = Estimate(-3.0, row_stderr=0.3), Estimate(-5.0, row_stderr=0.4)
    assert (one - other).row_stderr == pytest.approx(0.5)
    assert (other + one).row_stderr == pytest.approx(0.5)
    assert (one - 2.0).row_stderr == (Estimate(2.0) - one).row_stderr == 0.3
    assert math.isnan((Estimate(1.0) + Estimate(2.0)).row_stderr)


def test_errors_add_in_squares_and_numbers_stay_plain() -> None:
    total = Estimate(1.0, stderr=3.0, row_stderr=0.1) + Estimate(2.0, stderr=4.0)
    assert (total.value, total.stderr, total.row_stderr) == (3.0, 5.0, 0.1)
    assert total.low == pytest.approx(3 - 1.96 * 5)
    assert total.high == pytest.approx(3 + 1.96 * 5)
    shifted = total - 1.0
    assert (shifted.value, shifted.stderr) == (2.0, 5.0)
    record = (-shifted).to_dict()
    assert record["value"] == -2.0
    assert record["kind"] == "exact"
    assert Estimate(math.inf).to_dict()["value"] is None
    assert Estimate(np.array([1.0, math.nan])).to_dict()["value"] == [1.0, None]
