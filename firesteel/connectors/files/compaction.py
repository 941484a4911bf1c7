"""Compaction of a FileSink's small files before they become visible."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from firesteel.common.errors import InvalidProgramError

__all__ = [
    "Compaction",
    "ConcatFileCompactor",
    "FileCompactStrategy",
    "FileCompactor",
    "HeldFile",
    "IdenticalFileCompactor",
]

COMPACTED_PREFIX = "compacted-"
_UNLIMITED = -1


class FileCompactor(ABC):
    """Makes one file of several."""

    @abstractmethod
    def compact(self, inputs: Sequence[BinaryIO], output: BinaryIO) -> None:
        """Writes the contents of the inputs, in order, to the output."""

    @staticmethod
    def concat_file_compactor(file_delimiter: bytes | None = None) -> ConcatFileCompactor:
        """Concatenates files, with a delimiter between them if one is given."""
        return ConcatFileCompactor(file_delimiter)

    @staticmethod
    def identical_file_compactor() -> IdenticalFileCompactor:
        """Copies a single file."""
        return IdenticalFileCompactor()


class ConcatFileCompactor(FileCompactor):
    """Concatenates files."""

    def __init__(self, file_delimiter: bytes | None = None) -> None:
        self._delimiter = bytes(file_delimiter or b"")

    def compact(self, inputs: Sequence[BinaryIO], output: BinaryIO) -> None:
        """Writes one file after the other."""
        for index, stream in enumerate(inputs):
            if index:
                output.write(self._delimiter)
            shutil.copyfileobj(stream, output)


class IdenticalFileCompactor(FileCompactor):
    """Copies a single file; several are an error, as in Flink."""

    def compact(self, inputs: Sequence[BinaryIO], output: BinaryIO) -> None:
        """Copies the file."""
        if len(inputs) != 1:
            raise InvalidProgramError(
                f"The identical file compactor takes one file at a time, got {len(inputs)}.",
                hint="Use FileCompactor.concat_file_compactor(), or a strategy that compacts each file by itself.",
            )
        shutil.copyfileobj(inputs[0], output)


@dataclass(frozen=True)
class FileCompactStrategy:
    """When files are compacted: at every so many checkpoints, or when they have so many bytes together."""

    num_checkpoints_before_compaction: int = _UNLIMITED
    size_threshold: int = _UNLIMITED

    @staticmethod
    def builder() -> FileCompactStrategy.Builder:
        """Returns a builder."""
        return FileCompactStrategy.Builder()

    class Builder:
        """Builds a strategy."""

        def __init__(self) -> None:
            self._checkpoints = self._size = _UNLIMITED

        def enable_compaction_on_checkpoint(
            self, num_checkpoints_before_compaction: int
        ) -> FileCompactStrategy.Builder:
            """Compacts at every so many checkpoints."""
            if num_checkpoints_before_compaction < 1:
                raise InvalidProgramError(
                    f"The number of checkpoints must be positive, got {num_checkpoints_before_compaction}."
                )
            self._checkpoints = num_checkpoints_before_compaction
            return self

        def set_size_threshold(self, size_threshold: int) -> FileCompactStrategy.Builder:
            """Compacts when the files of a bucket have so many bytes."""
            self._size = size_threshold
            return self

        def set_num_compact_threads(self, num_compact_threads: int) -> FileCompactStrategy.Builder:
            """Has no effect: the task of the sink compacts its files itself."""
            if num_compact_threads < 1:
                raise InvalidProgramError(f"The number of threads must be positive, got {num_compact_threads}.")
            return self

        def build(self) -> FileCompactStrategy:
            """Returns the strategy."""
            if self._checkpoints == self._size == _UNLIMITED:
                raise InvalidProgramError(
                    "A FileCompactStrategy needs a condition.",
                    hint="Call set_size_threshold or enable_compaction_on_checkpoint.",
                )
            return FileCompactStrategy(self._checkpoints, self._size)


@dataclass(frozen=True)
class HeldFile:
    """A complete, hidden file that waits for its compaction."""

    bucket_id: str
    path: str
    final_path: str
    length: int
    superseded: tuple[str, ...] = ()
    """Hidden files that are not needed once the compacted file is committed."""


@dataclass
class Compaction:
    """The files of one writer that wait for compaction.

    A file that is rolled is held, which a checkpoint contains, until the strategy is satisfied. Then one file is made
    of all of its bucket; the held files are deleted when the checkpoint with that file is committed. A failure before
    that restores the held files.
    """

    strategy: FileCompactStrategy
    compact: Callable[[Sequence[HeldFile]], object]
    """Makes one file, which is durable, and returns what is to be committed."""
    checkpoints: int = 0

    def __post_init__(self) -> None:
        self._held: dict[str, list[HeldFile]] = {}

    def hold(self, file: HeldFile) -> None:
        """Takes a file."""
        self._held.setdefault(file.bucket_id, []).append(file)

    def held(self) -> list[HeldFile]:
        """The files that wait."""
        return [file for files in self._held.values() for file in files]

    def compact_due(self, *, end_of_input: bool) -> list[object]:
        """At a checkpoint: what is to be committed with it."""
        strategy = self.strategy
        self.checkpoints += 1
        all_due = end_of_input or self.checkpoints == strategy.num_checkpoints_before_compaction
        if all_due:
            self.checkpoints = 0
        due = [bucket_id for bucket_id, files in self._held.items() if all_due or self._is_large(files)]
        return [self.compact(self._held.pop(bucket_id)) for bucket_id in due]

    def _is_large(self, files: Sequence[HeldFile]) -> bool:
        return 0 <= self.strategy.size_threshold <= sum(file.length for file in files)
