"""The files of a program (``-pyfs``): added to its import path, and shipped to the cluster."""

from __future__ import annotations

import io
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from firesteel.client.errors import UsageError

__all__ = ["ProgramFiles", "program_files"]

_ARCHIVES = (".zip", ".whl", ".egg")


@dataclass(frozen=True)
class ProgramFiles:
    """What ``-pyfs`` names."""

    search_path: tuple[str, ...] = ()
    """The directories that the program imports from."""
    paths: tuple[Path, ...] = field(default=(), repr=False)

    def artifacts(self) -> dict[str, bytes]:
        """The files by name, as they are sent to a cluster: modules and archives."""
        found: dict[str, bytes] = {}
        for path in self.paths:
            name = f"{path.resolve().name}.zip" if path.is_dir() else path.name
            if name in found:
                raise UsageError(
                    f"-pyfs contains two files named {name}: only one of them would be importable.",
                    hint="Rename one, or put both into one directory or archive.",
                )
            found[name] = _zipped(path) if path.is_dir() else path.read_bytes()
        return found


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
        yield ProgramFiles(tuple(search_path), tuple(paths))
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


def _zipped(directory: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(directory.rglob("*")):
            inside = path.relative_to(directory)
            if path.is_file() and "__pycache__" not in inside.parts:
                archive.write(path, inside.as_posix())
    return buffer.getvalue()
