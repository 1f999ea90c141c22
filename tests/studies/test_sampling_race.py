"""The race in the small: the same tables, statements and figure in seconds."""

from __future__ import annotations

import pytest

from harmonium.data.load import load_data
from harmonium.report.figures import Figure, draw_figure
from harmonium.samplers.names import SAMPLERS, build_sampler
from harmonium.studies.base import SCALES, StudyResult
from harmonium.studies.names import STUDIES, find_study
from harmonium.studies.racing import Lengths, Racer
from harmonium.studies.sampling_race import PLANS, RACERS, planted_track, run_race, trained_track
from tests.conftest import need

LENGTHS = Lengths(500_000, 1_000_000, chains=8)
PAIR = (Racer("block Gibbs", "gibbs"), Racer("PT", "pt", {"rungs": 6, "base": "uniform"}))


def small_race(racers: tuple[Racer, ...], seed: int = 0) -> tuple[StudyResult, list[str]]:
    told: list[str] = []
    tracks = [planted_track(4, 48, 0)]
    return run_race(tracks, racers, LENGTHS, seed, told.append, absent=["mushrooms"]), told


@pytest.fixture(scope="module")
def raced() -> StudyResult:
    return small_race(PAIR)[0]


def test_tempering_jumps_a_hundred_times_as_often(raced: StudyResult) -> None:
    table = raced.tables[0]
    gibbs, tempered = table.rows
    assert gibbs["jumps"] == 0
    assert tempered["jumps"] >= 30
    assert tempered["gain"] == pytest.approx(tempered["jump_rate"] / gibbs["jump_rate_high"])
    assert tempered["gain"] >= 100
    assert raced.statements[0].holds
    assert "PT" in raced.statements[0].text
    assert raced.holds
    assert set(table.columns) == set(gibbs) == set(tempered)


def test_a_race_among_the_stuck_does_not_hold() -> None:
    again = Racer("more block Gibbs", "gibbs", {"steps": 2})
    result, told = small_race((PAIR[0], again))
    assert told == ["planted: block Gibbs", "planted: more block Gibbs"]
    assert result.statements[0].holds is False
    assert not result.holds


def test_the_same_seed_gives_the_same_tables(raced: StudyResult) -> None:
    again = small_race(PAIR)[0]
    assert [table.rows for table in again.tables] == [table.rows for table in raced.tables]
    other = small_race(PAIR, seed=1)[0]
    assert other.tables[0].rows[1] != raced.tables[0].rows[1]


def test_what_is_absent_is_said(raced: StudyResult) -> None:
    assert raced.statements[-1].text.startswith("mushrooms: left out, HARMONIUM_DATA")
    assert raced.statements[-1].holds is None


def test_the_figure_has_a_bar_for_every_row(raced: StudyResult) -> None:
    need("matplotlib", "report")
    (figure,) = raced.figures
    assert isinstance(figure, Figure)
    assert [bar.label for bar in figure.panels[0].bars] == ["block Gibbs", "PT"]
    assert figure.panels[0].bars[0].value is None  # only an upper bound
    drawn = draw_figure(figure).decode()
    assert all(
        word in drawn for word in ("jumps per million unit updates", "block Gibbs", "planted, 4 valleys")
    )


def test_a_trained_machine_is_known_exactly() -> None:
    track = trained_track("digits", load_data("digits"), hidden=4, updates=100, seed=0)
    assert track.model.units[0].size == 64
    assert track.valleys.code_weights.sum() == pytest.approx(1)
    result = run_race([track], PAIR[:1], Lengths(100_000, 400_000, chains=8), 0, lambda _: None)
    assert result.tables[1].rows[0]["log_partition"] == track.log_partition


def test_every_sampler_races() -> None:
    """But for the one that is of stacks alone."""
    assert {racer.name for racer in RACERS} == set(SAMPLERS) - {"deep"}
    assert RACERS[0].name == "gibbs"
    assert len({racer.label for racer in RACERS}) == len(RACERS)
    for racer in RACERS:
        build_sampler(racer.name, racer.settings)


def test_studies_are_found_by_name() -> None:
    assert set(PLANS) == set(SCALES)
    for name, study in STUDIES.items():
        assert find_study(name) is study
        assert study.summary
