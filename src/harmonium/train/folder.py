"""The folder of a run: its settings, logs, checkpoints and model, and who may write there.

::

    config.toml        the resolved settings          metrics.jsonl   what was measured, without clock values
    environment.json   what it was computed with      timing.jsonl    how long it took
    checkpoints/       the newest states              data.safetensors  the data, when they came as arrays
    model.safetensors  the trained model              report.html     when asked for
    samples.png        what was drawn at the end      level-0/ ... joint/ start.safetensors   of a greedy run

One process may write at a time; any number may read. The order of writing that makes a killed run resumable: the
records of an index go into the logs *before* the checkpoint of that index is saved, and a resumed run first cuts the
logs back to the index of the checkpoint it starts from.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import tomli_w
from filelock import FileLock, Timeout

from harmonium.errors import FileError, RunBusyError, SettingError
from harmonium.train.atomic import is_part, remove_leftovers, sync_folder, write_atomically
from harmonium.train.environment import describe_environment, differences
from harmonium.train.journal import append_line, cut_back, read_lines
from harmonium.train.plain import plain
from harmonium.train.storage import read_tensors, write_tensors

if TYPE_CHECKING:
    from harmonium.train.checkpoint import Checkpoints

HEADER = "# settings of a harmonium run, format 1"
"""First line of a run's config.toml: the sign by which a folder is known to be ours."""

CHECKPOINTS = "checkpoints"
LOCK = ".harmonium-lock"
START = "start.safetensors"

# config.toml comes last: while it is there, the folder is known to be a run's, also when a removal is interrupted.
KNOWN_FILES = (
    "model.safetensors",
    START,
    "metrics.jsonl",
    "timing.jsonl",
    "data.safetensors",
    "environment.json",
    "report.html",
    "samples.png",
    "config.toml",
)
"""Every file that harmonium writes at the top of a run folder, in the order in which ``force`` removes them."""

_CHECKPOINT = re.compile(r"step-\d{12,}\.safetensors")
_NUMBERED = re.compile(r"(\d{4,})(-.*)?")


class RunFolder:
    """A run's folder. ``create`` returns it locked for writing, ``open`` for reading only; ``lock`` turns one into the
    other. As a context manager it is locked inside the block and released after it.

    The lock belongs to the process, so the system releases it when the process is killed.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self._lock = FileLock(self.path / LOCK, thread_local=False)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        name: str = "run",
        parent: str | os.PathLike[str] = "runs",
        force: bool = False,
    ) -> RunFolder:
        """Makes the folder of a new run and locks it.

        Without ``path`` it is the next numbered one, ``runs/0001-NAME``. A folder that holds anything is refused unless
        ``force``, and then loses only the files of the earlier run in it; all others stay.

        Raises FileError when the folder is not empty, holds a file under one of our names that is not ours, or cannot
        be made; RunBusyError when another process is writing there.
        """
        try:
            if path is None:
                folder = cls(numbered_folder(Path(parent), name))
            else:
                cls.check_free(
                    path, force=force
                )  # before the lock: a folder that is not ours gets no lock file
                folder = cls(path)
                folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if isinstance(error, FileError | RunBusyError):
                raise
            raise FileError(
                f"cannot make the folder {path or parent}: {error.strerror or error}; choose another place (--out)"
            ) from error
        folder.lock()
        try:
            folder._refuse_contents(force)
            folder._clear()
        except BaseException:
            folder.release()
            raise
        sync_folder(folder.path.parent)
        return folder

    @classmethod
    def check_free(cls, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Raises what ``create`` would where it refuses what is at ``path``; makes and changes nothing."""
        folder = cls(path)
        try:
            if folder.path.is_dir():
                folder._refuse_contents(force)
                if (folder.path / LOCK).exists():
                    folder.lock().release()
            elif folder.path.exists():
                raise FileError(f"{path} is a file, not a folder; choose another name for the run")
        except OSError as error:
            if isinstance(error, FileError | RunBusyError):
                raise
            raise FileError(
                f"cannot read {path}: {error.strerror or error}; choose another place (--out)"
            ) from error

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunFolder:
        """Returns the folder of an existing run, for reading; a run that is still training may be read too.

        Raises FileError when the path is not a run folder.
        """
        folder = cls(path)
        if not folder.path.exists():
            raise FileError(f"{path} does not exist; name a run folder, such as those under runs/")
        if not folder.path.is_dir():
            raise FileError(f"{path} is a file, not a run folder; name the folder that it lies in")
        if not folder._is_ours():
            raise FileError(
                f"{path} is not a run folder; name one that harmonium train made, such as those under runs/"
            )
        if not folder.config_path.exists():
            # Settings are written before the first record, so that where there is one, they were there.
            if folder.metrics_path.exists():
                raise FileError(
                    f"the run in {path} has lost its config.toml; restore it from a copy, or start the run with the "
                    "same settings in another folder and copy the config.toml written there"
                )
            raise FileError(
                f"the run in {path} was stopped before it began; start it again with force=True (--force)"
            )
        return folder

    def lock(self) -> RunFolder:
        """Reserves the folder for writing by this process; does nothing when it is reserved already.

        Raises RunBusyError when another process, or another RunFolder of this one, is writing there.
        """
        if not self._lock.is_locked:
            try:
                self._lock.acquire(blocking=False)
            except Timeout:
                raise RunBusyError(
                    f"another process is writing in {self.path}; wait until it ends, or choose another folder (--out)"
                ) from None
            except (OSError, NotImplementedError) as error:  # the latter from file systems that know no locks
                raise FileError(
                    f"cannot lock {self.path}: {error}; check its permissions, or choose another place (--out)"
                ) from error
        return self

    def release(self) -> None:
        """Lets other processes write here again."""
        self._lock.release()

    @property
    def locked(self) -> bool:
        """Whether this object holds the right to write."""
        return self._lock.is_locked

    def __enter__(self) -> RunFolder:
        return self.lock()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    @property
    def config_path(self) -> Path:
        return self.path / "config.toml"

    @property
    def environment_path(self) -> Path:
        return self.path / "environment.json"

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def timing_path(self) -> Path:
        return self.path / "timing.jsonl"

    @property
    def data_path(self) -> Path:
        return self.path / "data.safetensors"

    @property
    def model_path(self) -> Path:
        return self.path / "model.safetensors"

    @property
    def samples_path(self) -> Path:
        return self.path / "samples.png"

    @property
    def report_path(self) -> Path:
        return self.path / "report.html"

    @property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints of the run (imports jax)."""
        from harmonium.train.checkpoint import Checkpoints

        return Checkpoints(self.path / CHECKPOINTS)

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Writes the resolved settings; those that are None are left out, for TOML has no word for it."""
        self._check_locked()
        text = f"{HEADER}\n{tomli_w.dumps(_without_none(plain(config, 'the settings', not_finite='keep')))}"
        write_atomically(self.config_path, text.encode(), overwrite=True, fault="config")

    def read_config(self) -> dict[str, Any]:
        """Returns the settings. Raises FileError when config.toml is missing or is no TOML."""
        try:
            return tomllib.loads(self._read(self.config_path))
        except tomllib.TOMLDecodeError as error:
            raise FileError(
                f"{self.config_path} is no TOML ({error}); correct it, or restore it from a copy"
            ) from error

    def write_environment(self) -> None:
        """Writes what the run is computed with (imports jax)."""
        self._check_locked()
        text = json.dumps(describe_environment(), indent=2, sort_keys=True) + "\n"
        write_atomically(self.environment_path, text.encode(), overwrite=True, fault="environment")

    def read_environment(self) -> dict[str, Any]:
        """Returns what ``write_environment`` wrote. Raises FileError when it is missing or damaged."""
        try:
            return json.loads(self._read(self.environment_path))
        except ValueError as error:
            raise FileError(
                f"{self.environment_path} is no JSON ({error}); restore it from a copy"
            ) from error

    def environment_changes(self) -> list[str]:
        """One line for each thing that is now different from when the run began, so that bits may differ too.

        A missing or damaged environment.json is one such line: it is no reason to lose a run.
        """
        try:
            before = self.read_environment()
        except FileError as error:
            return [f"what the run began with is not known: {error}"]
        return differences(before, json.loads(json.dumps(describe_environment())))

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Adds a line to metrics.jsonl: ``index`` and what was measured, never a clock value (see ``journal``)."""
        self._check_locked()
        append_line(self.metrics_path, record, fault="metrics")

    def append_timing(self, record: Mapping[str, Any]) -> None:
        """Adds a line to timing.jsonl: ``index`` and how long things took."""
        self._check_locked()
        append_line(self.timing_path, record, fault="timing")

    def read_metrics(self) -> list[dict[str, Any]]:
        """Returns the records of metrics.jsonl, whole lines only."""
        return read_lines(self.metrics_path)

    def read_timing(self) -> list[dict[str, Any]]:
        """Returns the records of timing.jsonl, whole lines only."""
        return read_lines(self.timing_path)

    def cut_back(self, index: int) -> None:
        """Drops from both logs what lies beyond ``index`` updates, and a torn last line."""
        self._check_locked()
        cut_back(self.metrics_path, index)
        cut_back(self.timing_path, index)

    def write_data(self, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any] | None = None) -> None:
        """Keeps data that came as arrays, so that the run can be resumed without whoever made them."""
        self._check_locked()
        document = {"kind": "data", "metadata": dict(metadata or {})}
        write_tensors(self.data_path, arrays, document, overwrite=True, fault="data")

    def read_data(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Returns the arrays and the metadata that ``write_data`` kept. Raises FileError as ``read_tensors`` does."""
        arrays, document = read_tensors(self.data_path)
        if document.get("kind") != "data":
            raise FileError(
                f"{self.data_path} holds a {document.get('kind')}, not data; restore it from a copy"
            )
        return arrays, document["metadata"]

    def _read(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise FileError(f"{path} does not exist; name a run folder that harmonium train made") from None
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(
                f"cannot read {path}: {error}; check its permissions, or restore it from a copy"
            ) from error

    def _check_locked(self) -> None:
        if not self.locked:
            raise RunBusyError(f"{self.path} is open for reading only; call lock() before writing there")

    def _is_ours(self) -> bool:
        try:
            with self.config_path.open("rb") as file:
                if file.readline(200).rstrip() == HEADER.encode():
                    return True
        except OSError:
            pass
        return (self.path / LOCK).exists()

    def _refuse_contents(self, force: bool) -> None:
        entries = [entry for entry in sorted(os.listdir(self.path)) if entry != LOCK and not is_part(entry)]
        if entries and not force:
            raise FileError(
                f"the folder {self.path} is not empty (it holds {entries[0]!r}); choose another, continue the run "
                "in it with harmonium resume, or pass force=True (--force) to replace the run in it"
            )
        taken = [entry for entry in entries if entry in KNOWN_FILES or entry == CHECKPOINTS]
        if taken and not self._is_ours():
            raise FileError(
                f"the folder {self.path} holds {taken[0]!r}, which is not of a harmonium run and would be lost; "
                "choose another folder (--out)"
            )

    def _clear(self) -> None:
        """Removes what harmonium wrote here, by its name, and nothing else."""
        remove_leftovers(self.path)
        checkpoints = self.path / CHECKPOINTS
        if checkpoints.is_dir():
            remove_leftovers(checkpoints)
            for entry in sorted(os.listdir(checkpoints)):
                if _CHECKPOINT.fullmatch(entry):
                    (checkpoints / entry).unlink()
            if not os.listdir(checkpoints):
                checkpoints.rmdir()
        stages = [*self.path.glob("level-[0-9]*"), *self.path.glob("joint")]
        for stage in map(RunFolder, sorted(stages)):
            if stage._is_ours():
                stage._clear()
                (stage.path / LOCK).unlink(missing_ok=True)
                if not os.listdir(stage.path):
                    stage.path.rmdir()
        for known in KNOWN_FILES:
            (self.path / known).unlink(missing_ok=True)


def numbered_folder(parent: Path, name: str) -> Path:
    """Makes and returns the next numbered folder; a process that comes second takes the number after."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "run"
    parent.mkdir(parents=True, exist_ok=True)
    while True:
        numbers = [int(match[1]) for match in map(_NUMBERED.fullmatch, os.listdir(parent)) if match]
        path = parent / f"{max(numbers, default=0) + 1:04d}-{slug}"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        if any(item is None for item in value):
            raise SettingError(
                f"the settings hold the list {value}, but TOML has no word for None; leave it out"
            )
        return [_without_none(item) for item in value]
    return value
