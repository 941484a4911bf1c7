"""File enumerator: discovers new files in directories while a job runs, and assigns them as splits."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, to_millis
from firesteel.connectors.base.split_enumerators import SharedSplitEnumerator
from firesteel.connectors.base.split_reader import AskAgain
from firesteel.filesystem.filesystem import FileStatus
from firesteel.filesystem.input_paths import InputPath, cannot_list, is_hidden_beneath, list_remote
from firesteel.filesystem.local_paths import FileReadError, is_hidden
from firesteel.filesystem.stores import current_stores
from firesteel.spi.source import SourceSplit, SplitEnumerator, SplitEnumeratorContext

__all__ = ["FileDiscoveryState", "MonitoringSplitEnumerator", "check_discovery_interval", "restore_static_enumerator"]

_log = logging.getLogger(__name__)

SplitT = TypeVar("SplitT", bound=SourceSplit)

MAX_STEP_S = 0.05
"""How long the search continues for one request: the JobMaster's thread must not be blocked."""
_MAX_PENDING_SPLITS = 64
"""With so many splits in hand the search rests until they are given out."""
_ENTRIES_PER_CLOCK_CHECK = 256
"""After so many entries of a directory the clock is looked at."""
_LISTING_WAIT_S = 0.01
"""How long to wait for the answer of a store before the clock is looked at."""
_LISTING_END_S = 5.0
_MIN_INTERVAL_SHARE = 0.9
"""A request that comes this part of the interval after the last search is not sent away for the rest of it."""


@dataclass(frozen=True)
class FileDiscoveryState(Generic[SplitT]):
    """What a checkpoint keeps: splits that no reader has, and all files that were ever found."""

    pending: Sequence[SplitT]
    known: Mapping[str, frozenset[str]]
    """Directories, and the names of the files in them."""


class MonitoringSplitEnumerator(SplitEnumerator[SplitT]):
    """Looks for new files when a reader asks for a split and the interval has passed since the last time.

    A file is known by its path from when it was found, and never read again; also if a job is started again with
    another spelling of the source's paths, through a link or with ``..`` in it. What one search finds is handed out in
    the order of the names, directory by directory. A search that takes long continues with the next request; a reader
    that has sent a request gets ``AskAgain`` meanwhile. So a request without an answer means that there is nothing new.
    """

    def __init__(
        self,
        context: SplitEnumeratorContext,
        paths: Sequence[InputPath],
        split_file: Callable[[FileStatus | str], Sequence[SplitT]],
        interval_ms: int,
        *,
        restored: FileDiscoveryState[SplitT] | Sequence[SplitT] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if restored is not None and not isinstance(restored, FileDiscoveryState):
            raise InvalidProgramError(
                "The checkpoint is of a source that read a fixed set of files, and does not contain the files it had "
                "read.",
                hint="Use process_static_file_set(), or give the source another uid to read all files.",
            )
        self._context = context
        self._paths = paths
        self._split_file = split_file
        self._interval_s = interval_ms / 1000
        self._clock = clock
        self._pending: deque[SplitT] = deque(restored.pending if restored else ())
        self._known: dict[str, set[str]] = {}
        self._keys: dict[str, tuple[str, ...]] = {}
        for directory, names in (restored.known if restored else {}).items():
            for key in {directory, _real(directory)}:
                self._known.setdefault(key, set()).update(names)
        self._warn_of_other_paths()
        self._awaiting: dict[int, None] = {}
        self._search: Iterator[FileStatus | str | None] | None = None
        self._listing: _Listing | None = None
        self._began: float | None = None
        self._asked_again = 0
        self._unlisted: set[str] = set()
        self._is_new = restored is None
        """The first search is not over: until then a directory that cannot be listed fails the job."""

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        """Gives what there is to those who have asked, the longest waiting first."""
        self._awaiting[subtask] = None
        if not self._pending:
            self._look()
        while self._pending and self._awaiting:
            reader = next(iter(self._awaiting))
            del self._awaiting[reader]
            self._context.assign_split(self._pending.popleft(), reader)
        if subtask in self._awaiting and self._search is not None:
            del self._awaiting[subtask]
            self._asked_again += 1
            self._context.assign_split(AskAgain(f"search {self._asked_again}"), subtask)

    def add_splits_back(self, splits: list[SplitT], subtask: int) -> None:
        """Puts splits back in front, to be read first."""
        self._pending.extendleft(reversed(splits))

    def snapshot_state(self, checkpoint_id: int) -> FileDiscoveryState[SplitT]:
        """The splits no reader has, and the files that are known."""
        known = {directory: frozenset(names) for directory, names in self._known.items()}
        return FileDiscoveryState(list(self._pending), known)

    def close(self) -> None:
        """Ends the search."""
        self._search = None
        if self._listing is not None:
            self._listing.join(_LISTING_END_S)

    # -- the search ---------------------------------------------------------------------------------

    def _look(self) -> None:
        now = self._clock()
        if self._search is None:
            if self._began is not None and now - self._began < _MIN_INTERVAL_SHARE * self._interval_s:
                return
            self._began = now
            self._search = self._new_files()
        for file in self._search:
            if file is not None:
                self._add(file)
            if len(self._pending) >= _MAX_PENDING_SPLITS or self._clock() - now >= MAX_STEP_S:
                return
        self._search = None
        self._is_new = False

    def _add(self, file: FileStatus | str) -> None:
        path = file if isinstance(file, str) else file.path
        directory, name = os.path.split(path)
        keys = self._keys_of(directory)
        if any(name in self._known.get(key, ()) for key in keys):
            return  # two of the paths lead there
        try:
            splits = self._split_file(file)
        except (FileNotFoundError, FileReadError):
            if not isinstance(file, str) or Path(path).exists():
                raise
            return  # deleted since it was listed
        for key in keys:
            self._known.setdefault(key, set()).add(name)
        self._pending.extend(splits)

    def _keys_of(self, directory: str) -> tuple[str, ...]:
        """The names under which the files of a directory are known: as it is written, and with its root's real path."""
        keys = self._keys.get(directory)
        if keys is None:
            roots = [str(path) for path in self._paths if directory == str(path) or directory.startswith(f"{path}/")]
            real = [_real(root) + directory[len(root) :] for root in roots] or [_real(directory)]
            keys = self._keys[directory] = tuple(dict.fromkeys((directory, *real)))
        return keys

    def _warn_of_other_paths(self) -> None:
        if not self._known:
            return
        for path in map(str, self._paths):
            for key in (path, _real(path)):
                below = key.rstrip("/") + "/"
                parent = os.path.dirname(key)  # noqa: PTH120 - of a URI, too
                if any(known in (key, parent) or known.startswith(below) for known in self._known):
                    return
        _log.warning(
            "No directory whose files the checkpoint lists as read is at or below %s: all files there are read.",
            ", ".join(map(str, self._paths)),
        )

    def _new_files(self) -> Iterator[FileStatus | str | None]:
        """Files that were not known when their directory was listed; None now and then, to look at the clock."""
        for path in self._paths:
            if isinstance(path, str):
                yield from self._in_store(path)
            elif path.is_file():
                yield str(path)
            else:
                yield from self._beneath(str(path), frozenset())

    def _in_store(self, path: str) -> Iterator[FileStatus | None]:
        listing = self._listing = _Listing(path)
        while not listing.is_over(_LISTING_WAIT_S):
            yield None
        self._listing = None
        if listing.error is not None:
            if not isinstance(listing.error, OSError):
                raise listing.error
            self._cannot_list(path, listing.error, is_nested=False)
            return
        self._unlisted.discard(path)
        for number, file in enumerate(listing.files, 1):
            directory, name = os.path.split(file.path)
            if name not in self._known.get(directory, ()) and not is_hidden_beneath(path, file.path):
                yield file
            elif number % _ENTRIES_PER_CLOCK_CHECK == 0:
                yield None

    def _beneath(self, directory: str, above: frozenset[str]) -> Iterator[str | None]:
        real = os.path.realpath(directory)
        if real in above:  # a link to a directory that contains it
            return
        known = [self._known.get(key, set()) for key in self._keys_of(directory)]
        found: list[tuple[str, bool]] = []
        try:
            with os.scandir(directory) as entries:
                for number, entry in enumerate(entries, 1):
                    if not is_hidden(entry.name) and not any(entry.name in names for names in known):
                        if entry.is_dir():
                            found.append((entry.name, True))
                        elif entry.is_file():
                            found.append((entry.name, False))
                    if number % _ENTRIES_PER_CLOCK_CHECK == 0:
                        yield None
        except OSError as error:
            self._cannot_list(directory, error, is_nested=bool(above))
            return
        self._unlisted.discard(directory)
        for name, is_directory in sorted(found):
            path = os.path.join(directory, name)  # noqa: PTH118 - a Path for each of many files takes its time
            if is_directory:
                yield None
                yield from self._beneath(path, above | {real})
            else:
                yield path

    def _cannot_list(self, directory: str, error: OSError, *, is_nested: bool) -> None:
        if is_nested and isinstance(error, FileNotFoundError):
            return  # deleted since it was found
        if self._is_new and "://" in directory:
            raise cannot_list(directory, error) from error
        if self._is_new:
            raise InvalidProgramError(
                f"The input directory '{directory}' cannot be listed: {error.strerror}."
            ) from error
        if directory not in self._unlisted:
            self._unlisted.add(directory)
            _log.warning("The input directory '%s' cannot be listed, and is tried again: %s", directory, error)


def _real(path: str) -> str:
    return path if "://" in path else os.path.realpath(path)


class _Listing:
    """Lists what is in a store, in a thread of its own: the JobMaster must not wait for it."""

    def __init__(self, path: str) -> None:
        self.files: Sequence[FileStatus] = ()
        self.error: Exception | None = None
        self._path = path
        self._thread = threading.Thread(target=current_stores().bind(self._run), name="firesteel-listing", daemon=True)
        self._thread.start()

    def is_over(self, timeout_s: float) -> bool:
        """Whether the answer is there, or comes soon."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def join(self, timeout_s: float) -> None:
        """Waits for the thread to end."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            self.files = list_remote(self._path)
        except Exception as error:  # noqa: BLE001 - raised again by who asked
            self.error = error


def check_discovery_interval(interval: Any) -> int:
    """The milliseconds of how often to look for new files."""
    millis: int = to_millis(interval)
    if millis <= 0:
        shown = interval.format() if isinstance(interval, Duration) else interval
        raise InvalidProgramError(f"The discovery interval must be at least a millisecond, not {shown}.")
    return millis


def restore_static_enumerator(
    context: SplitEnumeratorContext, state: FileDiscoveryState[SplitT] | Sequence[SplitT]
) -> SharedSplitEnumerator[SplitT]:
    """An enumerator of what a checkpoint has left over, which looks for nothing new."""
    return SharedSplitEnumerator(context, state.pending if isinstance(state, FileDiscoveryState) else state)
