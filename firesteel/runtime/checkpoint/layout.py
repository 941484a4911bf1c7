"""Directory and file names of checkpoints, as in Flink.

::

    <checkpoint dir>/<job id>/shared/…            files several checkpoints share
    <checkpoint dir>/<job id>/chk-<n>/…           files of one checkpoint
    <checkpoint dir>/<job id>/chk-<n>/_metadata   written last: the checkpoint exists when this does
    <savepoint dir>/savepoint-<job id>-<random>/  a savepoint, with all its files
"""

from __future__ import annotations

__all__ = ["CHECKPOINT_PREFIX", "METADATA_FILE", "SAVEPOINT_PREFIX", "SHARED_DIRECTORY", "checkpoint_id_of"]

METADATA_FILE = "_metadata"
SHARED_DIRECTORY = "shared"
CHECKPOINT_PREFIX = "chk-"
SAVEPOINT_PREFIX = "savepoint-"


def checkpoint_id_of(directory: str) -> int | None:
    """The number of the checkpoint in a directory; None if it is not named like a checkpoint's.

    >>> checkpoint_id_of("s3://bucket/checkpoints/5f2a/chk-17"), checkpoint_id_of("/sp/savepoint-5f2a-0c1d")
    (17, None)
    """
    name = directory.rstrip("/").rpartition("/")[2]
    number = name.removeprefix(CHECKPOINT_PREFIX)
    return int(number) if name != number and number.isascii() and number.isdigit() else None
