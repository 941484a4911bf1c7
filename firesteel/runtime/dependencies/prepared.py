"""The Python dependencies of a job on one machine: extracted and installed, until the job has ended."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from firesteel.runtime.dependencies.bundle import DependencyBundle, DependencyError, bundle_of
from firesteel.runtime.dependencies.directories import held_directory
from firesteel.runtime.dependencies.extraction import extract
from firesteel.runtime.dependencies.requirements import install_requirements

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["PreparedDependencies", "prepare_dependencies"]

PACKAGES = (".zip", ".whl", ".egg")
_FILES, _ARCHIVES = "files", "archives"


@dataclass(frozen=True)
class PreparedDependencies:
    """Where the dependencies are on this machine."""

    digest: str
    search_path: tuple[str, ...]
    """The directories that the job's functions import from, besides those of the interpreter."""
    working_directory: str | None
    """The directory with the extracted archives, if there are any."""
    executable: str | None
    """The interpreter, if the job has chosen one."""
    directories: tuple[Path, ...]
    """All directories that are needed."""
    _held: ExitStack = field(repr=False, compare=False)

    def close(self) -> None:
        """Removes the directories, unless another job uses them. May be called again."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def prepare_dependencies(artifacts: Mapping[str, bytes]) -> PreparedDependencies | None:
    """Extracts and installs what a job has brought along; None if that is nothing.

    Raises DependencyError if something is invalid or cannot be installed; then nothing is left behind.
    """
    bundle = bundle_of(artifacts)
    if bundle is None:
        return None
    digest = bundle.digest
    with ExitStack() as held:
        place = held.enter_context(held_directory(digest, lambda target: _extract(bundle, target)))
        search_path = [str(path) for path in sorted((place / _FILES).iterdir())]
        directories = [place]
        executable = _executable(bundle, place / _ARCHIVES)
        if bundle.requirements is not None:
            packages = held.enter_context(_packages(bundle, executable or sys.executable))
            search_path.append(str(packages))
            directories.append(packages)
        return PreparedDependencies(
            digest,
            tuple(search_path),
            str(place / _ARCHIVES) if bundle.archives else None,
            executable,
            tuple(directories),
            held.pop_all(),
        )


def _extract(bundle: DependencyBundle, target: Path) -> None:
    (target / _FILES).mkdir()
    (target / _ARCHIVES).mkdir()
    for number, file in enumerate(bundle.files):
        if Path(file.name).name != file.name or file.name in ("", ".", ".."):
            raise DependencyError(f"{file.name!r} is not the name of a file.")
        directory = target / _FILES / f"{number:04}-{file.name}"
        if file.name.endswith(PACKAGES):
            extract(file.name, file.content, directory)
        else:
            directory.mkdir()
            (directory / file.name).write_bytes(file.content)
    for archive in bundle.archives:
        extract(archive.name, archive.content, target / _ARCHIVES / archive.target)


def _executable(bundle: DependencyBundle, archives: Path) -> str | None:
    """The absolute path of the interpreter; a relative one may be in an archive."""
    if bundle.executable is None:
        return None
    inside = archives / bundle.executable
    if not os.path.isabs(bundle.executable) and inside.exists():  # noqa: PTH117
        if not os.access(inside, os.X_OK):  # not every archive has permissions
            inside.chmod(inside.stat().st_mode | 0o100)
        return str(inside)
    found = shutil.which(bundle.executable)
    if found is None:
        targets = ", ".join(archive.target for archive in bundle.archives)
        raise DependencyError(
            f"The Python interpreter {bundle.executable} does not exist on this machine"
            f"{f', nor in the archives ({targets})' if targets else ''}.",
            hint="python.executable is an absolute path, a command, or a path in an archive, which begins with the "
            "archive's target directory: venv.zip/bin/python.",
        )
    return found


def _packages(bundle: DependencyBundle, executable: str) -> AbstractContextManager[Path]:
    # the same packages may be other files for another interpreter
    digest = hashlib.sha256(f"{executable} {sys.version_info[:2]} {bundle.requirements_digest}".encode()).hexdigest()
    return held_directory(f"packages-{digest}", lambda target: install_requirements(bundle, executable, target))
