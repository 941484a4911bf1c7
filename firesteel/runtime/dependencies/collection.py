"""Reads the files that the configuration of a job names as its Python dependencies."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

from firesteel.common.errors import FiresteelError
from firesteel.config import python_options
from firesteel.config.configuration import Configuration
from firesteel.filesystem.filesystem import scheme_of
from firesteel.filesystem.local_paths import to_local_path
from firesteel.filesystem.stores import Stores
from firesteel.runtime.dependencies.bundle import BUNDLE, Archive, DependencyBundle, DependencyError, DependencyFile

__all__ = ["FILE_DELIMITER", "PARAM_DELIMITER", "collect_dependencies", "dependency_artifacts"]

FILE_DELIMITER = ","
PARAM_DELIMITER = "#"


def dependency_artifacts(configuration: Configuration) -> dict[str, bytes]:
    """The Python dependencies of a job as an artifact of it; nothing if there are none."""
    bundle = collect_dependencies(configuration)
    return {} if bundle == DependencyBundle() else {BUNDLE: bundle.pack()}


def collect_dependencies(configuration: Configuration) -> DependencyBundle:
    """Reads the dependencies of a job; DependencyError if a file cannot be read."""
    read = _Reader(Stores.of(configuration))
    requirements = configuration.get_optional(python_options.REQUIREMENTS)
    file, _, wheels = (requirements or "").partition(PARAM_DELIMITER)
    return DependencyBundle(
        tuple(read.python_file(path) for path in _paths(configuration.get_optional(python_options.FILES))),
        tuple(read.archive(text) for text in _paths(configuration.get_optional(python_options.ARCHIVES))),
        read.content("python.requirements", file) if file else None,
        tuple(read.directory("python.requirements", wheels)) if wheels else None,
        configuration.get_optional(python_options.EXECUTABLE),
    )


def _paths(value: str | None) -> list[str]:
    return [path.strip() for path in (value or "").split(FILE_DELIMITER) if path.strip()]


class _Reader:
    def __init__(self, stores: Stores):
        self._stores = stores

    def python_file(self, path: str) -> DependencyFile:
        local = _local(path)
        if local is not None and local.is_dir():
            return DependencyFile(f"{local.resolve().name}.zip", _zipped(local))
        return DependencyFile(_name(path), self.content("python.files", path))

    def archive(self, text: str) -> Archive:
        path, _, target = text.partition(PARAM_DELIMITER)
        name = _name(path)
        target = target or name
        if Path(target).is_absolute() or ".." in Path(target).parts:
            raise DependencyError(
                f"python.archives: {target!r} is not a directory below the working directory.",
                hint="The target directory of an archive is a relative path without '..'.",
            )
        return Archive(name, target, self.content("python.archives", path))

    def directory(self, key: str, path: str) -> Iterator[DependencyFile]:
        local = _local(path)
        if local is None or not local.is_dir():
            raise DependencyError(f"{key}: {path} is not a local directory.")
        for file in sorted(local.iterdir()):
            if file.is_file():
                yield DependencyFile(file.name, file.read_bytes())

    def content(self, key: str, path: str) -> bytes:
        local = _local(path)
        try:
            if local is None:
                return self._stores.get(path).read(path)
            return local.read_bytes()
        except FileNotFoundError:
            raise DependencyError(f"{key}: {path} does not exist.") from None
        except (OSError, FiresteelError) as error:
            raise DependencyError(f"{key}: {path} cannot be read: {error}") from error


def _local(path: str) -> Path | None:
    return to_local_path(path) if scheme_of(path) == "file" else None


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _zipped(directory: Path) -> bytes:
    """A directory as an archive; the same files give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(directory.rglob("*")):
            inside = path.relative_to(directory)
            if path.is_file() and "__pycache__" not in inside.parts:
                archive.writestr(zipfile.ZipInfo(inside.as_posix()), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
