"""The files of a program (``-pyfs``), added to its import path. Its jobs have them as Python dependencies."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from firesteel.client.errors import UsageError

__all__ = ["ProgramFiles", "program_files"]

_ARCHIVES = (".zip", ".whl", ".egg")


@dataclass(frozen=True)
class ProgramFiles:
    """What ``-pyfs`` names."""

    search_path: tuple[str, ...] = ()
    """The directories that the program imports from."""


@contextmanager
def program_files(given: Sequence[str], into: Path | None = None) -> Iterator[ProgramFiles]:
    """The files given with ``-pyfs``; archives are unpacked within the context, or permanently ``into``."""
    paths = [Path(text.strip()) for value in given for text in value.split(",") if text.strip()]
    unpacked: list[str] = []
    search_path: list[str] = []
    try:
        for path in paths:
            if path.is_dir():
                search_path.append(str(path.resolve()))
            elif path.is_file() and path.suffix == ".py":
                search_path.append(str(path.resolve().parent))
            elif path.is_file() and path.suffix in _ARCHIVES:
                directory = _unpacked(path, into)
                search_path.append(directory)
                if into is None:
                    unpacked.append(directory)
            else:
                what = "is not a Python file, zip archive or directory" if path.exists() else "does not exist"
                raise UsageError(f"-pyfs: {path} {what}.")
        yield ProgramFiles(tuple(search_path))
    finally:
        for directory in unpacked:
            shutil.rmtree(directory, ignore_errors=True)


def _unpacked(archive: Path, into: Path | None) -> str:
    # slots look for modules in directories only
    if into is None:
        directory = tempfile.mkdtemp(prefix="firesteel-pyfs-")
    else:
        directory = str(into / archive.name)
        shutil.rmtree(directory, ignore_errors=True)
        Path(directory).mkdir(parents=True)
    try:
        with zipfile.ZipFile(archive) as opened:
            opened.extractall(directory)
    except (OSError, zipfile.BadZipFile) as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise UsageError(f"-pyfs: {archive} cannot be read: {error}.") from None
    return directory
