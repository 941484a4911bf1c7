"""The Python dependencies of a job as one file, which is shipped and kept with the job."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from firesteel.common.errors import FiresteelError

__all__ = ["BUNDLE", "Archive", "DependencyBundle", "DependencyError", "DependencyFile", "bundle_of"]

BUNDLE = "python-dependencies.bundle"
"""The name of the file among the artifacts of a job."""


class DependencyError(FiresteelError):
    """A Python dependency of a job is missing, invalid, or cannot be installed."""


class DependencyFile(msgspec.Struct, frozen=True):
    """A file and its content."""

    name: str
    content: bytes


class Archive(msgspec.Struct, frozen=True):
    """An archive and the directory of the working directory that it is extracted to."""

    name: str
    target: str
    content: bytes


class DependencyBundle(msgspec.Struct, frozen=True):
    """All Python dependencies of a job, with the content of their files."""

    files: tuple[DependencyFile, ...] = ()
    """Modules and archives of modules, in the order in which they are searched."""
    archives: tuple[Archive, ...] = ()
    requirements: bytes | None = None
    wheels: tuple[DependencyFile, ...] | None = None
    """What the requirements are installed from; None if pip's own settings say where from."""
    executable: str | None = None

    def pack(self) -> bytes:
        """The bundle as bytes; the same dependencies give the same bytes."""
        return msgspec.msgpack.encode(self)

    @property
    def digest(self) -> str:
        """Identifies the content."""
        return hashlib.sha256(self.pack()).hexdigest()

    @property
    def requirements_digest(self) -> str:
        """Identifies what is installed, regardless of files and archives."""
        wheels = None if self.wheels is None else [(wheel.name, wheel.content) for wheel in self.wheels]
        return hashlib.sha256(msgspec.msgpack.encode((self.requirements, wheels))).hexdigest()


def bundle_of(artifacts: Mapping[str, bytes]) -> DependencyBundle | None:
    """The dependencies among the artifacts of a job; None if there are none.

    Artifacts besides the bundle are modules and archives of modules.
    """
    packed = artifacts.get(BUNDLE)
    try:
        bundle = DependencyBundle() if packed is None else msgspec.msgpack.decode(packed, type=DependencyBundle)
    except msgspec.MsgspecError as error:
        raise DependencyError(f"The Python dependencies of the job cannot be read: {error}.") from None
    others = tuple(DependencyFile(name, content) for name, content in artifacts.items() if name != BUNDLE)
    bundle = msgspec.structs.replace(bundle, files=(*others, *bundle.files))
    return None if bundle == DependencyBundle() else bundle
