from __future__ import annotations

import os
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from harmonium.cli import main
from harmonium.cli.config import SETTING_OF_FLAG
from harmonium.errors import HarmoniumWarning
from tests.cli.conftest import Command

VERBS = ("train", "resume", "evaluate", "sample", "modes", "inspect", "reproduce", "figure")
START = [sys.executable, "-c", "import sys; from harmonium.cli.main import run; sys.exit(run())"]


def spent(*arguments: str) -> tuple[float, str]:
    """CPU seconds of one command in a process of its own, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*START, *arguments], capture_output=True, text=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def test_help_answers_within_a_quarter_of_a_second() -> None:
    seconds, text = min(spent("--help") for _ in range(3))
    assert seconds < 0.25
    assert all(f"  {verb} " in text for verb in VERBS)


def test_help_imports_neither_jax_nor_numpy() -> None:
    program = (
        "import sys; from harmonium.cli.main import run; run(['--help']); run(['train', '--help']); "
        "print([name for name in ('jax', 'numpy', 'harmonium.train') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_verb_explains_itself(harmonium: Command) -> None:
    assert set(main.typer.main.get_command(main.app).commands) == set(VERBS)  # pyright: ignore
    for verb in VERBS:
        said = harmonium(f"{verb} --help")
        assert said.status == 0
        assert "--json" in said.out
        assert said.err == ""


def test_the_help_of_train_names_every_flag_and_choice(harmonium: Command) -> None:
    from harmonium.data.names import data_names
    from harmonium.energy.names import MODELS
    from harmonium.rules.names import RULES
    from harmonium.units.kinds import UNIT_KINDS

    text = harmonium("train --help").out
    words = text.replace("|", " ").split()
    for flag in (*SETTING_OF_FLAG, "--set", "--out", "--force"):
        assert flag in words
    # Pairs are of the levels of a deep machine, softmax units of its labels: no choice of a layer.
    kinds = [kind for kind in UNIT_KINDS if kind != "categorical" and not kind.endswith("-pair")]
    for choice in (*MODELS, *RULES, *kinds, "threshold", "stochastic", "stop", "halve"):
        assert choice in words
    assert all(name in text for name in data_names())


def test_the_help_of_evaluate_names_every_method(harmonium: Command) -> None:
    from harmonium.evaluate.likelihood import METHODS

    words = harmonium("evaluate --help").out.replace("|", " ").split()
    assert all(method in words for method in METHODS)


def test_version(harmonium: Command) -> None:
    said = harmonium("--version")
    assert said.status == 0
    assert said.out.startswith("harmonium ")


def test_no_verb_is_wrong_usage_and_shows_the_help(harmonium: Command) -> None:
    said = harmonium("")
    assert said.status == 2
    assert "Commands:" in said.out


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("trian", "trian"),
        ("train --hiden 3", "--hidden"),
        ("train --epochs many", "--epochs"),
        ("train --devices 3", "--devices"),
        ("evaluate", "RUN|MODEL"),
        ("sample x --n", "--n"),
    ],
)
def test_wrong_usage(harmonium: Command, line: str, hint: str) -> None:
    said = harmonium(line)
    assert said.status == 2
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert len(said.err.splitlines()) == 1
    assert hint in said.err


def test_an_unexpected_error_is_one_sentence(
    harmonium: Command, small_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr("harmonium.samplers.sample.sample", broken)
    said = harmonium(f"sample {small_run}")
    assert said.status == 1
    assert said.out == ""
    assert said.err.startswith("error: unexpected ZeroDivisionError: two lines; ")
    assert "HARMONIUM_DEBUG=1" in said.err


def test_the_traceback_is_shown_when_asked_for(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARMONIUM_DEBUG", "1")
    assert main.run(["inspect", "nothing.npy"]) == 2
    assert "Traceback" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"), [(MemoryError(), 1), (RuntimeError("RESOURCE_EXHAUSTED: Out of memory"), 1)]
)
def test_no_memory(
    harmonium: Command, small_run: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def greedy(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("harmonium.samplers.sample.sample", greedy)
    said = harmonium(f"sample {small_run}")
    assert said.status == status
    assert said.err.startswith("error: out of memory")


def test_a_full_disk_is_no_fault_of_the_user(harmonium: Command, small_run: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*START, "inspect", "bars-and-stripes:side=2"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_closed_standard_output_is_no_failure() -> None:
    program = f"{sys.executable} -c 'import sys; from harmonium.cli.main import run; sys.exit(run())' inspect digits"
    done = subprocess.run(["bash", "-c", f"{program} >&-"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_letters_that_the_terminal_cannot_spell_are_written_as_codes(tmp_path: Path) -> None:
    path = tmp_path / "\u00fcber.csv"
    path.write_text("0,1\n1,0\n")
    done = subprocess.run(
        [*START, "inspect", str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("\\xfcber.csv: 2 train rows")


def test_a_platform_that_jax_does_not_have(small_run: Path) -> None:
    done = subprocess.run(
        [*START, "evaluate", str(small_run)],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "abacus"},
        timeout=60,
    )
    assert done.returncode == 2
    assert "error: JAX_PLATFORMS=abacus names nothing jax can compute on here; unset it" in done.stderr


def test_a_reader_that_leaves_is_no_reason_for_words() -> None:
    program = f"{sys.executable} -c 'import sys; from harmonium.cli.main import run; sys.exit(run())' inspect digits"
    done = subprocess.run(["bash", "-c", f"{program} | true"], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""


def test_an_interrupt_elsewhere_is_one_word(
    harmonium: Command, small_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("harmonium.samplers.sample.sample", interrupted)
    said = harmonium(f"sample {small_run}")
    assert (said.status, said.out, said.err) == (130, "", "interrupted\n")


def test_warnings_are_one_line(harmonium: Command, small_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def warning(*_: object, **__: object) -> None:
        warnings.warn("the first line\n  and on_divergence='halve'", HarmoniumWarning, stacklevel=1)

    monkeypatch.setattr("harmonium.cli.cache.keep_compiled_programs", warning)
    said = harmonium(f"sample {small_run} --n 1 --steps 1")
    assert said.status == 0
    assert said.err == "warning: the first line and --on-divergence halve\n"
