"""The authentication token of a cluster, in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from firesteel.common.errors import FiresteelError
from firesteel.config.cluster_options import REST_TOKEN_FILE
from firesteel.config.configuration import Configuration

__all__ = ["TOKEN_FILE_NAME", "TokenFileError", "make_token", "read_or_create_token", "read_token"]

TOKEN_FILE_NAME = "token"  # noqa: S105 - the name of a file
MIN_LENGTH = 16


class TokenFileError(FiresteelError):
    """A token file is missing, empty, or readable by others."""


def read_or_create_token(configuration: Configuration, cluster_directory: str | Path) -> str:
    """The token of ``rest.token-file``, else of the cluster's directory, where it is created if missing."""
    configured = configuration.get(REST_TOKEN_FILE)
    if configured:
        return read_token(configured)
    path = Path(cluster_directory) / TOKEN_FILE_NAME
    try:
        return make_token(path)
    except FileExistsError:
        return read_token(path)


def make_token(path: str | Path) -> str:
    """Writes a new random token; raises FileExistsError if the file is there."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    token = secrets.token_urlsafe(32)
    # linked into place when it is whole: another JobManager of the cluster may read it at any moment
    draft = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{token}\n")
        os.link(draft, path)
    finally:
        draft.unlink()
    return token


def read_token(path: str | Path) -> str:
    """Reads the token from a file that only its owner can read."""
    path = Path(path)
    try:
        with path.open() as file:
            status = os.fstat(file.fileno())
            token = file.read(4096).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TokenFileError(f"Cannot read the token file {path}: {error}") from None
    if status.st_uid not in (os.geteuid(), 0):
        raise TokenFileError(
            f"The token file {path} belongs to another user (uid {status.st_uid}).",
            hint="Its owner could execute code in the cluster: use a file that belongs to you.",
        )
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise TokenFileError(
            f"The token file {path} is accessible by other users (mode {stat.S_IMODE(status.st_mode):04o}).",
            hint=f"The token allows code execution in the cluster: run chmod 600 {path}, and replace the token.",
        )
    if len(token) < MIN_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
        raise TokenFileError(
            f"The token file {path} contains no valid token.",
            hint=f"It takes at least {MIN_LENGTH} characters without spaces; delete the file to have a new one made.",
        )
    return token
