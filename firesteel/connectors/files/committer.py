"""Exactly-once committer of a FileSink."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from firesteel.common.errors import FileWriteError
from firesteel.connectors.files.bucket_directories import again_if_removed, make_directories, sync_directory
from firesteel.connectors.files.part_file import PendingFile, remove_staged
from firesteel.connectors.files.part_store import check_kind
from firesteel.spi.sink import Committer

__all__ = ["FileCommitter"]

_log = logging.getLogger(__name__)


class FileCommitter(Committer[PendingFile]):
    """Gives pending files their final names; a file that has it already is left alone."""

    def __init__(self) -> None:
        self._staged: dict[Path, None] = {}

    def commit(self, committables: Sequence[PendingFile]) -> None:
        """Moves files to their final names and makes those durable; a file that is gone is an error."""
        self._commit(committables, restored=False)

    def recommit(self, committables: Sequence[PendingFile]) -> None:
        """Does the same for files that may have their final names, or be gone.

        A file that is neither hidden nor finished was committed before the failure, and someone who reads the directory
        has taken it away. (Or the disk has lost it: hence the warning.)
        """
        self._commit(committables, restored=True)

    def finish(self) -> None:
        """Deletes the hidden files of tasks that failed, and of those that were run again."""
        for directory in self._staged:
            remove_staged(directory)

    def _commit(self, committables: Sequence[PendingFile], restored: bool) -> None:
        changed: dict[Path, None] = {}
        for pending in committables:
            check_kind(pending, PendingFile, "a local directory")
            self._staged[Path(pending.in_progress_path).parent] = None
            source, target = Path(pending.in_progress_path), Path(pending.final_path)
            try:
                if source.exists():
                    self._check_length(source, pending)
                    changed.update(dict.fromkeys(_move(source, target)))
                elif not target.exists():
                    self._report_gone(pending, restored)
            except FileNotFoundError as error:
                # another committer (of the previous attempt, if it is still alive) was faster
                if not target.exists():
                    raise _failed(pending, error) from error
            except OSError as error:
                raise _failed(pending, error) from error
        for directory in changed:
            with suppress(FileNotFoundError):  # a writer that ended has removed it, which was empty
                sync_directory(directory)
        for pending in committables:
            for path in pending.superseded:
                Path(path).unlink(missing_ok=True)

    def _check_length(self, source: Path, pending: PendingFile) -> None:
        size = source.stat().st_size
        if size != pending.length:
            raise FileWriteError(
                f"The output file '{source}' has {size} bytes, but had {pending.length} when it was complete.",
                path=pending.final_path,
                hint="Someone has changed the file; its records cannot be committed.",
            )

    def _report_gone(self, pending: PendingFile, restored: bool) -> None:
        if restored:
            _log.warning("%s does not exist: assuming that it was committed, read and removed.", pending.final_path)
            return
        raise FileWriteError(
            f"The output file '{pending.final_path}' cannot be committed: '{pending.in_progress_path}' no longer "
            "exists.",
            path=pending.final_path,
            hint="Files beneath '.inprogress' must stay for as long as a job can be restored.",
        )


def _move(source: Path, target: Path) -> list[Path]:
    """Gives a file its final name; returns the directories whose new entries are to be made durable."""
    changed: list[Path] = [target.parent]

    def move() -> None:
        changed.extend(make_directories(target.parent)[1])
        source.rename(target)

    again_if_removed(move)
    return changed


def _failed(pending: PendingFile, error: OSError) -> FileWriteError:
    return FileWriteError(
        f"The output file '{pending.final_path}' cannot be committed: {error.strerror or error}.",
        path=pending.final_path,
    )
