"""Extracts archives, with permissions and symbolic links, and never outside of the target directory."""

from __future__ import annotations

import io
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path

from firesteel.runtime.dependencies.bundle import DependencyError

__all__ = ["extract"]

MAX_EXTRACTED_BYTES = 16 * 1024**3
_TAR = (".tar", ".tar.gz", ".tgz")


def extract(name: str, content: bytes, target: Path) -> None:
    """Extracts an archive: a tar file if it is called one, else a zip file, as in Flink."""
    target.mkdir(parents=True, exist_ok=True)
    try:
        if name.lower().endswith(_TAR):
            with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                _check_size(name, sum(tar_member.size for tar_member in tar.getmembers()))
                _extract_tar(tar, target)
        else:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                _check_size(name, sum(member.file_size for member in archive.infolist()))
                for member in archive.infolist():
                    _extract_member(archive, member, target)
    except (zipfile.BadZipFile, tarfile.TarError, NotImplementedError, RuntimeError, EOFError) as error:
        kind = "tar" if name.lower().endswith(_TAR) else "zip"
        raise DependencyError(f"{name} is not a {kind} archive: {error}.") from None


def _check_size(name: str, size: int) -> None:
    if size > MAX_EXTRACTED_BYTES:
        raise DependencyError(f"{name} has {size} bytes when it is extracted; {MAX_EXTRACTED_BYTES} are allowed.")


def _extract_tar(tar: tarfile.TarFile, target: Path) -> None:
    for member in tar.getmembers():
        if _place(target, member.name) != target.resolve():
            tar.extract(member, target, filter="tar")


def _extract_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    mode = member.external_attr >> 16  # of archives that were made on Unix
    place = _place(target, member.filename)
    if member.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(mode):
        place.unlink(missing_ok=True)
        place.symlink_to(archive.read(member).decode())
        return
    with archive.open(member) as source, place.open("wb") as copy:
        shutil.copyfileobj(source, copy)
    if mode & 0o777:
        place.chmod(mode & 0o755 | 0o600)


def _place(target: Path, name: str) -> Path:
    """Where a member goes; a link that leads elsewhere does not count as a directory of the archive."""
    parts = [part for part in Path(name).parts if part not in ("..", "/")]
    place = target.resolve().joinpath(*parts)
    if not place.parent.resolve().is_relative_to(target.resolve()):
        raise DependencyError(f"An archive has a member outside of its directory: {name!r}.")
    return place
