"""The token of a cluster: a file that only its owner can read, which both sides know."""

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
    """A token file that is missing, empty, or that others can read."""


def read_or_create_token(configuration: Configuration, cluster_directory: str | Path) -> str:
    """The token of a cluster: that of ``rest.token-file``, else its directory's own, which is made if there is none."""
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
    """The token in a file, if nobody but its owner can read it."""
    path = Path(path)
    try:
        with path.open() as file:
            status = os.fstat(file.fileno())
            token = file.read(4096).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TokenFileError(f"The token file {path} cannot be read: {error}") from None
    if status.st_uid not in (os.geteuid(), 0):
        raise TokenFileError(
            f"The token file {path} belongs to another user (uid {status.st_uid}).",
            hint="That user knows the token, and could run code in the cluster: use a file of your own.",
        )
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise TokenFileError(
            f"Others than its owner can use the token file {path} (mode {stat.S_IMODE(status.st_mode):04o}).",
            hint=f"Whoever has the token can run code in the cluster: chmod 600 {path}, and write a new token into it.",
        )
    if len(token) < MIN_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
        raise TokenFileError(
            f"The token file {path} holds no usable token.",
            hint=f"It takes at least {MIN_LENGTH} characters without spaces; delete the file to have a new one made.",
        )
    return token
