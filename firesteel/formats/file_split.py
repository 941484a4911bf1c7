"""File splits, and reader positions within them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["CheckpointedPosition", "FileSourceSplit"]


class CheckpointedPosition(NamedTuple):
    """Where to read on: at an offset, which the format understands, and so many records behind it.

    Without an offset, the records are counted from the beginning of the split.
    """

    offset: int | None
    records_after_offset: int = 0


@dataclass(frozen=True)
class FileSourceSplit:
    """The records of a file that begin at a byte from ``start`` up to but not including ``end``, None for all.

    Once begun, ``position`` is an offset to go on from, for most formats that of a byte, and ``records_to_skip`` how
    many records after it have been emitted already. Offsets in a compressed file are those of its decompressed bytes.
    """

    split_id: str
    path: str
    start: int = 0
    end: int | None = None
    position: int | None = None
    records_to_skip: int = 0
    version: str | None = None
    """The file's version in a store that has versions: a file that was replaced since is not read on."""
