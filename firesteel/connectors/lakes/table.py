"""The interface of a table format: what writers, committers and readers need of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from firesteel.connectors.lakes.committable import LakeCommittable
from firesteel.types.logical import RowType

__all__ = ["LakeTable", "OutputFile"]


class OutputFile(ABC):
    """A data file that is being written."""

    path: str

    @abstractmethod
    def write(self, data: Any) -> None:
        """Writes the rows of a pyarrow Table."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes written so far."""

    @abstractmethod
    def close(self) -> Mapping[str, Any]:
        """Completes the file; returns what it takes to commit it."""

    @abstractmethod
    def discard(self) -> None:
        """Gives the file up."""


class LakeTable(ABC):
    """A table, by its name or place. Descriptions are picklable; what they connect to stays in a process."""

    format_name: str

    def close(self) -> None:  # noqa: B027 - not all are connected
        """Disconnects; the table is connected again when it is needed."""

    # -- columns -----------------------------------------------------------------------------------

    @abstractmethod
    def row_type(self) -> RowType:
        """The columns of the table now, with Flink's types."""

    @abstractmethod
    def arrow_schema(self) -> Any:
        """The columns of the table now, as its files have them."""

    @abstractmethod
    def add_columns(self, row_type: RowType) -> None:
        """Adds columns, which are null in the rows that are there."""

    @abstractmethod
    def describe(self) -> str:
        """The table, for errors."""

    # -- writing -----------------------------------------------------------------------------------

    @abstractmethod
    def target_file_size(self) -> int:
        """Bytes after which another file is begun."""

    @abstractmethod
    def partitions(self, data: Any) -> Iterable[tuple[Any, Any]]:
        """The rows of a pyarrow Table by partition: a hashable key and a Table for each."""

    @abstractmethod
    def new_file(self, partition: Any, name: str) -> OutputFile:
        """Begins a data file of a partition."""

    @abstractmethod
    def new_change_file(self, name: str, schema: Any) -> OutputFile:
        """Begins a file of changes; it is no part of the table."""

    @abstractmethod
    def read_change_file(self, path: str) -> Any:
        """The rows of a file of changes, a pyarrow Table."""

    # -- committing --------------------------------------------------------------------------------

    @abstractmethod
    def refresh(self) -> None:
        """Forgets what was read of the table."""

    @abstractmethod
    def is_committed(self, committable: LakeCommittable) -> bool:
        """Whether the table has what would be committed."""

    @abstractmethod
    def append(self, committable: LakeCommittable) -> None:
        """Adds the files to the table. LakeConflictError: nothing was done."""

    @abstractmethod
    def apply_changes(
        self, committable: LakeCommittable, key: Sequence[str], upserts: Any, deleted: Any, name: str
    ) -> None:
        """Replaces the rows with the keys of both tables by the first one's. LakeConflictError: nothing was done.

        New files have names that begin with ``name``.
        """

    @abstractmethod
    def overwrite(self, committable: LakeCommittable, by_partition: bool) -> None:
        """Replaces all rows, or those of the partitions of the files, by the files."""

    @abstractmethod
    def files_named(self, prefix: str) -> Iterator[str]:
        """The paths of all files in the table's place whose names begin so, committed or not."""

    @abstractmethod
    def referenced(self, paths: Sequence[str]) -> set[str]:
        """Those of the paths that any version of the table has."""

    @abstractmethod
    def delete_file(self, path: str) -> None:
        """Deletes a file; does nothing if there is none."""
