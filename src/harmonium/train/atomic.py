"""Files that appear whole or not at all.

A file is written beside its target under a temporary name, flushed to the disk, renamed over the target, and the
folder is flushed too. Whoever looks at the target at any moment, including after a crash, sees the old bytes or the
new bytes and nothing between. A temporary file whose writer was killed is never read, and the next writer of the same
target removes it.
"""

from __future__ import annotations

import errno
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harmonium.errors import FileError
from harmonium.train.faults import die, fault_due, fault_point

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

PART_SUFFIX = ".harmonium-part"
"""How the name of a file that is still being written ends; it begins with a dot and the target's name."""

_OPEN_FLAGS = os.O_WRONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def write_atomically(path: str | os.PathLike[str], data: bytes, *, overwrite: bool, fault: str) -> Path:
    """Writes ``data`` to ``path`` so that a crash leaves the old file or the new one, and returns the path written.

    A symbolic link is followed: the file it points to is replaced. ``fault`` is the kind of file, one of
    ``faults.WRITERS``, or another word for a file that no run depends on.

    Raises FileError when the file exists and ``overwrite`` is False, when its folder does not exist, or when the
    system refuses the write (disk full, no permission); in each case an older file is untouched.
    """
    target = Path(os.path.realpath(path))
    _refuse(target, path, overwrite)
    remove_leftovers(target.parent, target.name)
    fault_point(f"{fault}.before-temp")
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}{PART_SUFFIX}")
    renamed = False
    try:
        with _open_part(part) as descriptor:
            if fault_due(f"{fault}.mid-temp"):
                write_all(descriptor, data[: len(data) // 2])
                die()
            write_all(descriptor, data)
            os.fsync(descriptor)
            fault_point(f"{fault}.after-temp")
            _refuse(target, path, overwrite)
            if (
                sys.platform != "win32"
            ):  # still locked, so that nobody takes it for abandoned before it is renamed
                os.replace(part, target)
        if sys.platform == "win32":  # an open file cannot be renamed there
            os.replace(part, target)
        renamed = True
        fault_point(f"{fault}.after-rename")
        sync_folder(target.parent)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        state = (
            "the new file is there but may not outlive a power failure"
            if renamed
            else "any older file is untouched"
        )
        raise FileError(
            f"cannot write {path}: {error.strerror or error}; {state}; free some space or choose another place"
        ) from error
    finally:
        if not renamed:
            with suppress(OSError):
                part.unlink()
    return target


def remove_leftovers(folder: Path, name: str | None = None) -> list[str]:
    """Removes the temporary files of killed writers of ``folder/name`` (of every target when None); names removed.

    A file that a living process is still writing is left alone: its writer holds a lock on it.
    """
    removed: list[str] = []
    for entry in sorted(_parts(folder, name)):
        part = folder / entry
        with suppress(OSError):
            descriptor = os.open(part, os.O_RDWR)
            try:
                abandoned = _claim(descriptor)
            finally:
                if sys.platform == "win32":
                    os.close(descriptor)
            if abandoned:
                part.unlink()
                removed.append(entry)
            if sys.platform != "win32":
                os.close(descriptor)
    return removed


def is_part(name: str) -> bool:
    """Whether ``name`` is that of a file still being written, or left behind by a killed writer."""
    return name.startswith(".") and name.endswith(PART_SUFFIX)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes every byte: one call of the system may take only some of them."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(folder: Path) -> None:
    """Flushes the entries of a folder to the disk, so that a rename outlives a power failure.

    Does nothing where folders cannot be opened or flushed (Windows, some network file systems).
    """
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


def _refuse(target: Path, path: str | os.PathLike[str], overwrite: bool) -> None:
    if target.is_dir():
        raise FileError(f"{path} is a folder; give the name of a file in it")
    if not overwrite and target.exists():
        raise FileError(f"{path} exists already; choose another name, or pass overwrite=True (--force)")
    if not target.parent.is_dir():
        raise FileError(
            f"cannot write {path}: the folder {target.parent.name!r} does not exist; make it first"
        )


def _parts(folder: Path, name: str | None) -> list[str]:
    try:
        entries = os.listdir(folder)
    except OSError:
        return []
    return [entry for entry in entries if is_part(entry) and (name is None or entry.startswith(f".{name}."))]


@contextmanager
def _open_part(part: Path) -> Iterator[int]:
    descriptor = os.open(part, _OPEN_FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        _claim(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def _claim(descriptor: int) -> bool:
    """Locks an open temporary file; False where its writer lives, or where the file system knows no locks."""
    if fcntl is None:
        return True  # an open file cannot be removed there: the attempt to remove it is the question
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
