"""INSERT OVERWRITE: files that replace those of a table or of its partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firesteel.filesystem.local_paths import find_files
from firesteel.spi.sink import Committer, SinkWriter

__all__ = ["OverwritingCommitter", "OverwritingWriter"]


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

    def __init__(self, files: Committer[Any], root: Path, is_partitioned: bool) -> None:
        self._files = files
        self._root = root
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
        new = {Path(file.final_path) for file in pending}
        for directory in {path.parent for path in new} if self._is_partitioned else {self._root}:  # 2
            for file in _visible(directory):
                if file not in new:
                    file.unlink(missing_ok=True)
                    with suppress(OSError):  # not empty
                        if file.parent != directory:
                            file.parent.rmdir()


def _visible(directory: Path) -> Iterator[Path]:
    """The files that readers find."""
    return iter(list(find_files(directory)) if directory.exists() else [])
