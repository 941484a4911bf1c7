"""Checkpoint storage: the directory of a job's checkpoints, and how they are written, found and deleted."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from firesteel.common.errors import CheckpointDirectoryError, CheckpointStorageError, CorruptStateError
from firesteel.filesystem.filesystem import FileSystem, join, normalize, parent
from firesteel.filesystem.stores import current_stores, get_filesystem
from firesteel.runtime.checkpoint.layout import (
    CHECKPOINT_PREFIX,
    METADATA_FILE,
    SAVEPOINT_PREFIX,
    SHARED_DIRECTORY,
    checkpoint_id_of,
)
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.model.checkpoint_options import CheckpointLocation

__all__ = [
    "CheckpointStorage",
    "check_files",
    "check_target",
    "completed_checkpoints",
    "delete_checkpoint",
    "delete_files",
    "dispose",
    "is_visible",
    "load",
    "resolve",
    "store",
]

_PROBE = ".probe-"
_DELETE_THREADS = 4


def load(path: str) -> CheckpointMetadata:
    """The metadata of a checkpoint or savepoint: of its directory, its ``_metadata``, or a job's newest checkpoint."""
    directory = resolve(path)
    file = join(directory, METADATA_FILE)
    try:
        data = get_filesystem(file).read(file)
    except FileNotFoundError:
        raise CorruptStateError(f"The checkpoint metadata {file} is missing.", path=file) from None
    return CheckpointMetadata.from_bytes(data, directory, file)


def resolve(path: str) -> str:
    """The directory of the checkpoint or savepoint that a path means; see :func:`load`."""
    path = normalize(path)
    if path.rpartition("/")[2] == METADATA_FILE:
        path = parent(path)
    filesystem = get_filesystem(path)
    if filesystem.exists(join(path, METADATA_FILE)):
        return path
    completed = completed_checkpoints(path)
    if completed:
        return completed[-1]
    names = filesystem.list(path)
    found = f"it holds {', '.join(names[:5])}{' …' if len(names) > 5 else ''}" if names else "it is empty or missing"
    raise CheckpointDirectoryError(
        f"There is no checkpoint or savepoint in {path}: {found}.",
        path=path,
        hint=f"Give the directory that has the file {METADATA_FILE}, or <checkpoint dir>/<job id> for the newest one.",
    )


def is_visible(directory: str) -> bool:
    """Whether a directory is there, or was: something is in it, or its parent lists it."""
    filesystem = get_filesystem(directory)
    return bool(filesystem.list(directory)) or directory.rpartition("/")[2] in filesystem.list(parent(directory))


def completed_checkpoints(job_directory: str) -> list[str]:
    """The directories of a job's completed checkpoints, oldest first."""
    job_directory = normalize(job_directory)
    filesystem = get_filesystem(job_directory)
    numbers = [checkpoint_id_of(name) for name in filesystem.list(job_directory)]
    directories = [join(job_directory, f"{CHECKPOINT_PREFIX}{n}") for n in sorted(n for n in numbers if n is not None)]
    return [directory for directory in directories if filesystem.exists(join(directory, METADATA_FILE))]


def store(location: CheckpointLocation, metadata: CheckpointMetadata) -> str:
    """Writes ``_metadata``: with it, and all at once, the checkpoint exists. Returns the checkpoint's path."""
    directory = location.exclusive
    path = join(directory, METADATA_FILE)
    get_filesystem(path).create_once(path, metadata.to_bytes(directory))
    return directory


def check_target(directory: str) -> None:
    """CheckpointStorageError if no savepoint can be written beneath a directory, which is created if need be."""
    path = join(normalize(directory), f"{_PROBE}{uuid.uuid4().hex}")
    filesystem = get_filesystem(path)
    filesystem.write(path, (b"",))
    filesystem.delete(path)


def check_files(metadata: CheckpointMetadata) -> None:
    """CorruptStateError if a file of a checkpoint is missing or too short; the content is checked when it is read."""
    needed: dict[str, int] = {}
    for segment in metadata.segments():
        needed[segment.path] = max(needed.get(segment.path, 0), segment.offset + segment.length)

    def check(item: tuple[str, int]) -> None:
        path, length = item
        try:
            size = get_filesystem(path).size(path)
        except FileNotFoundError:
            raise CorruptStateError(f"The state file {path} is missing.", path=path) from None
        if size < length:
            raise CorruptStateError(
                f"The state file {path} should have at least {length} bytes, but has {size}.", path=path
            )

    with ThreadPoolExecutor(_DELETE_THREADS, thread_name_prefix="firesteel-transfer") as pool:
        for _ in pool.map(current_stores().bind(check), needed.items()):
            pass


def delete_files(paths: Iterable[str]) -> None:
    """Deletes files, several at a time; those that are missing are as good as deleted."""
    paths = list(paths)
    if len(paths) < _DELETE_THREADS:
        for path in paths:
            get_filesystem(path).delete(path)
        return
    stores = current_stores()
    with ThreadPoolExecutor(_DELETE_THREADS, thread_name_prefix="firesteel-transfer") as pool:
        for _ in pool.map(lambda path: stores.get(path).delete(path), paths):
            pass


def delete_checkpoint(path: str, *, whole: bool = True) -> None:
    """Deletes the directory of a checkpoint, complete or not; files it shares with others stay.

    Without ``whole`` only the metadata goes: other checkpoints still need some of the rest.
    """
    path = normalize(path)
    filesystem = get_filesystem(path)
    # first: from now on it is not a checkpoint, even if the rest fails
    filesystem.delete(join(path, METADATA_FILE))
    if whole:
        filesystem.delete_tree(path)


def dispose(path: str) -> None:
    """Deletes a savepoint or a retained checkpoint with all files that no other checkpoint of its job needs."""
    directory = resolve(path)
    metadata = load(directory)
    needed: set[str] = set()
    if checkpoint_id_of(directory) is not None:
        for other in completed_checkpoints(parent(directory)):
            if other != directory:
                needed |= load(other).files()
    delete_checkpoint(directory, whole=not _any_beneath(directory, needed))
    delete_files(sorted(metadata.files() - needed))
    if checkpoint_id_of(directory) is not None:
        _remove_if_empty(parent(directory))


def _any_beneath(directory: str, paths: Iterable[str]) -> bool:
    return any(path.startswith(directory + "/") for path in paths)


def _remove_if_empty(job_directory: str) -> None:
    filesystem = get_filesystem(job_directory)
    filesystem.delete_empty(join(job_directory, SHARED_DIRECTORY))
    filesystem.delete_empty(job_directory)


class CheckpointStorage:
    """The checkpoints of one job beneath a checkpoint directory."""

    def __init__(self, base_dir: str, job_id: str):
        self.base_dir = normalize(base_dir)
        self.job_id = job_id
        self.job_directory = join(self.base_dir, job_id)

    load = staticmethod(load)
    store = staticmethod(store)
    check_files = staticmethod(check_files)
    delete_files = staticmethod(delete_files)
    delete_checkpoint = staticmethod(delete_checkpoint)
    dispose = staticmethod(dispose)

    @property
    def _filesystem(self) -> FileSystem:
        return get_filesystem(self.base_dir)

    def location(self, checkpoint_id: int) -> CheckpointLocation:
        """Where the files of a checkpoint go."""
        return CheckpointLocation(
            join(self.job_directory, f"{CHECKPOINT_PREFIX}{checkpoint_id}"), join(self.job_directory, SHARED_DIRECTORY)
        )

    def savepoint_location(self, target_dir: str) -> CheckpointLocation:
        """Where the files of a new savepoint go: a directory of its own beneath ``target_dir``."""
        name = f"{SAVEPOINT_PREFIX}{self.job_id[:6]}-{uuid.uuid4().hex[:12]}"
        directory = join(normalize(target_dir), name)
        return CheckpointLocation(directory, directory)

    def completed(self) -> list[str]:
        """The directories of this job's completed checkpoints, oldest first."""
        return completed_checkpoints(self.job_directory)

    def highest_checkpoint_id(self) -> int:
        """The highest number any checkpoint of this job has had, as far as something of it is left; else 0."""
        numbers = (checkpoint_id_of(name) for name in self._filesystem.list(self.job_directory))
        return max((number for number in numbers if number is not None), default=0)

    def check_writable(self) -> None:
        """CheckpointStorageError if files cannot be written, read and deleted in the checkpoint directory."""
        self.check_token(self.probe_token(), keep=False)

    def probe_token(self) -> str:
        """Creates a file by whose name a slot verifies that it sees the same directory; see :meth:`check_token`."""
        token = uuid.uuid4().hex
        path = join(self.job_directory, _PROBE + token)
        self._filesystem.write(path, (token.encode(),))
        return token

    def check_token(self, token: str, *, keep: bool = True) -> None:
        """CheckpointDirectoryError if the directory here is not the one with the token, or may not be written to."""
        path = join(self.job_directory, _PROBE + token)
        try:
            found = self._filesystem.read(path)
        except FileNotFoundError:
            raise CheckpointDirectoryError(
                f"The checkpoint directory {self.base_dir} is not the same here as where the job was started.",
                path=self.base_dir,
                hint="Set execution.checkpointing.dir to a directory that all hosts share: a mounted network file "
                "system, or an object store such as s3://bucket/checkpoints.",
            ) from None
        if found != token.encode():
            raise CheckpointStorageError(
                f"The store of {path} does not return the data that was written to it: {found[:40]!r}.", path=path
            )
        own = f"{path}-{uuid.uuid4().hex[:8]}"
        self._filesystem.write(own, (b"",))
        self._filesystem.delete(own)
        if not keep:
            self.remove_token(token)

    def remove_token(self, token: str) -> None:
        """Removes the file that :meth:`probe_token` left."""
        self._filesystem.delete(join(self.job_directory, _PROBE + token))
        self.remove_if_empty()

    def remove_other_tokens(self, own: str) -> None:
        """Removes what others have left of theirs: those who ran the job before, and were killed."""
        for name in self._filesystem.list(self.job_directory):
            if name.startswith(_PROBE) and name != _PROBE + own:
                self._filesystem.delete(join(self.job_directory, name))

    def remove_unreferenced(
        self,
        needed: Iterable[str],
        retained: Iterable[str] | None = None,
        may_delete: Callable[[], bool] = lambda: True,
    ) -> list[str]:
        """Deletes the files that attempts that died have left: in ``shared``, and in incomplete checkpoints.

        Only while no checkpoint is being written, which would be taken for one of those. ``needed`` are the files of
        all checkpoints that are kept. Of the completed ones those that are ``retained`` stay, by default all: another
        should have been deleted, but could not be at the time. A retained one is never
        taken for an incomplete one: its metadata may be out of sight for a moment. ``may_delete`` is asked once all
        files have been found and before the first is deleted: whether nothing has been written meanwhile. Returns what
        was deleted.
        """
        needed = frozenset(needed)
        complete = frozenset(self.completed())
        given_up: frozenset[str] = frozenset()
        if retained is not None:
            retained = frozenset(retained)
            complete, given_up = retained, complete - retained
        incomplete = [
            join(self.job_directory, name)
            for name in self._filesystem.list(self.job_directory)
            if checkpoint_id_of(name) is not None and join(self.job_directory, name) not in complete
        ]
        removed: list[str] = []
        for directory in (join(self.job_directory, SHARED_DIRECTORY), *incomplete):
            paths = [join(directory, name) for name in self._filesystem.list(directory)]
            removed += (path for path in paths if path not in needed)
        if not may_delete():
            return []
        for directory in given_up:
            delete_checkpoint(directory, whole=False)
        delete_files(removed)
        for directory in incomplete:
            self._filesystem.delete_empty(directory)
        return removed

    def remove_if_empty(self) -> None:
        """Removes the job's directory if no checkpoint is left in it."""
        _remove_if_empty(self.job_directory)

    def delete_all(self) -> None:
        """Deletes all checkpoints of the job, with everything they share."""
        self._filesystem.delete_tree(self.job_directory)
