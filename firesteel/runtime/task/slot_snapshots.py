"""Checkpoint resources that the tasks of one process share: writer threads, state files, local copies."""

from __future__ import annotations

import queue
from collections.abc import Callable

from firesteel.config import checkpointing_options
from firesteel.config.configuration import Configuration
from firesteel.filesystem.stores import configure_filesystems
from firesteel.process.concurrency import SYSTEM, BackgroundThread, Concurrency
from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader
from firesteel.runtime.checkpoint.local_state import LocalStateStore
from firesteel.runtime.checkpoint.storage import CheckpointStorage
from firesteel.runtime.model.elements import CheckpointBarrier

__all__ = ["SlotSnapshots"]

_MAX_THREADS = 4
_END_TIMEOUT_S = 5.0


class SlotSnapshots:
    """Threads are started when there is something to write, and end with the slot."""

    def __init__(self, configuration: Configuration, job_id: str, concurrency: Concurrency = SYSTEM):
        self._configuration = configuration
        self._job_id = job_id
        self._concurrency = concurrency
        self._stores = configure_filesystems(configuration)
        self._local_state: LocalStateStore | None = None
        if job_id and configuration.get(checkpointing_options.LOCAL_RECOVERY):
            self._local_state = LocalStateStore(
                job_id, configuration.get(checkpointing_options.LOCAL_RECOVERY_DIRECTORY)
            )
        self._work: queue.Queue[Callable[[], None] | None] = concurrency.queue()
        self._threads: list[BackgroundThread] = []

    def use_stores(self) -> None:
        """Has this thread reach its files as the slot's job does: it may have worked for another one."""
        self._stores.use()

    def check_storage(self, token: str | None) -> None:
        """CheckpointStorageError unless this process sees the JobMaster's checkpoint directory."""
        directory = self._configuration.get(checkpointing_options.CHECKPOINTS_DIRECTORY)
        if token is not None and directory is not None:
            CheckpointStorage(directory, self._job_id).check_token(token)

    def run_async(self, work: Callable[[], None]) -> None:
        """Runs work, which must not raise, in one of the threads."""
        self._work.put(work)
        if len(self._threads) < _MAX_THREADS:
            name = f"firesteel-snapshot-{len(self._threads)}"
            self._threads.append(self._concurrency.start(self._stores.bind(self._run), name=name))

    def create_files(self, barrier: CheckpointBarrier) -> SnapshotFiles:
        """Where the state of a task goes."""
        return SnapshotFiles.configured(barrier.options.location, self._configuration, self._local_state)

    def create_reader(self) -> StateFileReader:
        """Reads the state of a checkpoint; to be closed."""
        return StateFileReader.configured(self._configuration, self._local_state)

    def confirm(self, checkpoint_id: int) -> None:
        if self._local_state is not None:
            self.run_async(lambda: self._confirm(checkpoint_id))

    def _confirm(self, checkpoint_id: int) -> None:
        if self._local_state is not None:
            self._local_state.confirm(checkpoint_id)

    def close(self, *, job_is_over: bool) -> None:
        """Ends the threads; what is stuck in a storage that does not answer is left to its fate."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join(_END_TIMEOUT_S)
        if self._local_state is not None:
            if job_is_over:
                self._local_state.delete()
            else:
                self._local_state.close()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
