"""INSERT OVERWRITE: files that replace those of a table or of its partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firesteel.common.errors import FileWriteError
from firesteel.connectors.files.part_file import PendingFile
from firesteel.connectors.files.s3_part_file import PendingUpload
from firesteel.filesystem.filesystem import join
from firesteel.filesystem.input_paths import is_hidden_beneath, list_remote
from firesteel.filesystem.local_paths import find_files
from firesteel.filesystem.s3_uploads import S3Object
from firesteel.filesystem.stores import get_filesystem
from firesteel.spi.sink import Committer, SinkWriter

__all__ = ["OverwritingCommitter", "OverwritingWriter"]

_EMPTY = ".empty"


@dataclass(frozen=True)
class _End:
    """Comes with the files of a writer: what is overwritten with no rows has no files."""

    subtask: int


class OverwritingWriter(SinkWriter[Any]):
    """Writes as another writer does, and hands over that its input has ended."""

    def __init__(self, files: SinkWriter[Any], subtask: int) -> None:
        self._files = files
        self._subtask = subtask
        self._is_due = False
        self.write_record = files.write_record
        self.write_batch = files.write_batch  # type: ignore[method-assign]
        self.has_room = files.has_room  # type: ignore[method-assign]
        self.snapshot_state = files.snapshot_state  # type: ignore[method-assign]
        self.notify_checkpoint_complete = files.notify_checkpoint_complete  # type: ignore[method-assign]
        self.close = files.close  # type: ignore[method-assign]

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self._files.write_batch(values, timestamps)

    def flush(self, end_of_input: bool) -> None:
        self._files.flush(end_of_input)
        self._is_due = end_of_input

    def prepare_commit(self) -> list[Any]:
        committables = self._files.prepare_commit()
        if self._is_due:
            self._is_due = False
            committables = [*committables, _End(self._subtask)]
        return committables


class OverwritingCommitter(Committer[Any]):
    """Replaces files, once all new ones are complete.

    1. The new files get their final names. Before that, nothing has changed.
    2. The other files are deleted: of the whole table, or of the partitions for which there are new files.

    A failure during 1 or 2 leaves old and new files, and never neither of them. Doing both again completes them. Who
    reads between 1 and 2 finds both.
    """

    def __init__(self, files: Committer[Any], root: Path | S3Object, is_partitioned: bool) -> None:
        self._files = files
        self._table: _Table = _LocalTable(root) if isinstance(root, Path) else _StoredTable(root)
        self._is_partitioned = is_partitioned
        self.finish = files.finish  # type: ignore[method-assign]
        self.close = files.close  # type: ignore[method-assign]

    def commit(self, committables: Sequence[Any]) -> None:
        self._replace(committables, self._files.commit)

    def recommit(self, committables: Sequence[Any]) -> None:
        self._replace(committables, self._files.recommit)

    def _replace(self, committables: Sequence[Any], commit: Callable[[Sequence[Any]], None]) -> None:
        pending = [item for item in committables if not isinstance(item, _End)]
        commit(pending)  # 1
        new = {self._table.path_of(file) for file in pending}
        directories = {path.rpartition("/")[0] for path in new} if self._is_partitioned else {self._table.root}
        for directory in directories:  # 2
            self._table.delete_others(directory, new)


class _Table(ABC):
    """The files of a table, by their paths."""

    root: str

    @abstractmethod
    def path_of(self, pending: Any) -> str:
        """The path of a new file."""

    @abstractmethod
    def delete_others(self, directory: str, new: AbstractSet[str]) -> None:
        """Deletes the files beneath a directory that readers find, but for the new ones."""


class _LocalTable(_Table):
    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def path_of(self, pending: PendingFile) -> str:
        return pending.final_path

    def delete_others(self, directory: str, new: AbstractSet[str]) -> None:
        above = Path(directory)
        for file in list(find_files(above)) if above.exists() else []:
            if str(file) not in new:
                file.unlink(missing_ok=True)
                with suppress(OSError):  # not empty
                    if file.parent != above:
                        file.parent.rmdir()


class _StoredTable(_Table):
    """Objects of a bucket. A table without any is marked with a hidden one: a path without objects does not exist."""

    def __init__(self, root: S3Object) -> None:
        self.root = str(root)

    def path_of(self, pending: PendingUpload) -> str:
        return str(S3Object.parse(pending.path))

    def delete_others(self, directory: str, new: AbstractSet[str]) -> None:
        store = get_filesystem(directory)
        try:
            found = [file.path for file in list_remote(directory)]
            old = [path for path in found if path not in new and not is_hidden_beneath(directory, path)]
            if not new:
                store.write(join(directory, _EMPTY), (b"",))
            for path in old:
                store.delete(path)
        except OSError as error:
            raise FileWriteError(
                f"The files of '{directory}' that are overwritten cannot be deleted: {error}.",
                path=directory,
                hint="The credentials need s3:ListBucket, s3:DeleteObject and s3:PutObject.",
            ) from error
