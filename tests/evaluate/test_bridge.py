"""The bridge between neighbours against ratios that are known, and what samples of other laws do to it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from harmonium.evaluate.bridge import Bridge, bridge

BLOCKS, DRAWS = 16, 400
RATIO = 1.3


def normals(seed: int, heat: float = 1.0, apart: float = 1.0, blocks: int = BLOCKS) -> Bridge:
    """Two pairs of normal laws ``apart`` from each other, whose partition functions part by `RATIO` in all.

    The energies of a pair are :math:`x^2 / 2` and :math:`(x - a)^2 / 2 + f`; ``heat`` is an inverse temperature that
    the draws are at and the weights are not.
    """
    generator = np.random.default_rng(seed)
    draws = generator.standard_normal((2, blocks, DRAWS, 2)) / np.sqrt(heat)
    lift = np.array([RATIO - 0.4, 0.4])
    here, there = draws[0], draws[1] + apart

    def change(x: np.ndarray) -> np.ndarray:
        return (x - apart) ** 2 / 2 + lift - x**2 / 2

    return bridge(-change(here), change(there))


def test_it_is_the_ratio_within_its_error() -> None:
    """Over seeds: the mean, the scatter, and how often Student's interval covers."""
    found = [normals(seed) for seed in range(200)]
    errors = np.array([one.value for one in found]) - RATIO
    stderr = np.array([one.stderr for one in found])
    assert abs(errors.mean()) < 4.5 * errors.std() / np.sqrt(200)
    assert 0.8 < errors.std() / np.sqrt(np.mean(stderr**2)) < 1.25
    covered = sum(abs(error) < one.half_width for error, one in zip(errors, found, strict=True))
    assert scipy.stats.binom.cdf(covered, 200, 0.95) > 1e-5
    assert scipy.stats.binom.sf(covered, 200, 0.95) > 1e-5
    assert found[0].half_width == pytest.approx(scipy.stats.t.isf(0.025, BLOCKS - 1) * found[0].stderr)
    alarms = sum(one.slope_chance < 0.05 for one in found)
    assert scipy.stats.binomtest(alarms, 200, 0.05).pvalue > 1e-5


def test_it_solves_the_equation_that_it_says() -> None:
    generator = np.random.default_rng(0)
    hotter, colder = generator.normal(-0.5, 1, (2, 8, 30, 1))
    found = bridge(hotter, colder).value
    left = (1 / (1 + np.exp(-(found + hotter)))).sum()
    right = (1 / (1 + np.exp(-(colder - found)))).sum()
    assert left == pytest.approx(right, rel=1e-9)


@pytest.mark.parametrize("heat", [0.8, 1.25])
def test_draws_of_another_temperature_contradict_crooks(heat: float) -> None:
    assert normals(0).slope_chance > 1e-3
    assert normals(0, heat).slope_chance < 1e-6


def test_overlap_is_one_for_one_law_and_vanishes_far_apart() -> None:
    np.testing.assert_allclose(normals(0, apart=0.0).overlap, 1, atol=1e-12)
    near, far = normals(0, apart=1.0).overlap, normals(0, apart=8.0).overlap
    assert (near > 0.5).all()
    assert (far < 0.01).all()


def test_equal_weights_have_no_error() -> None:
    """Every draw gives the same ratio: the value is exact, to the last digit, and the slope says nothing."""
    found = bridge(np.full((8, 5, 3), 0.25), np.full((8, 5, 3), -0.25))
    assert found.value == pytest.approx(-0.75, rel=1e-15)
    assert found.stderr < 1e-14
    assert found.slope_chance == 1.0


def test_a_block_is_left_out_as_if_it_were_not_there() -> None:
    """The jackknife by one Newton step against that by solving again."""
    generator = np.random.default_rng(1)
    here, there = generator.standard_normal((8, 200, 1)), generator.standard_normal((8, 200, 1)) + 1
    hotter, colder = here - 0.5, 0.5 - there
    again = np.array(
        [bridge(*(np.delete(part, block, axis=0) for part in (hotter, colder))).value for block in range(8)]
    )
    stderr = np.sqrt(7 / 8 * np.sum((again - again.mean()) ** 2))
    assert bridge(hotter, colder).stderr == pytest.approx(stderr, rel=0.02)
