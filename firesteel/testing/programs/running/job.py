"""One job of a run: what is done to it while it runs, and how its end is awaited."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from firesteel.common.errors import CheckpointError, FiresteelError, InvalidProgramError, NotEnoughSlotsError
from firesteel.common.job_client import JobClient
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.model.partitioner import ForwardPartitioner
from firesteel.testing.faulty_storage import StorageFaults
from firesteel.testing.programs.program import Program
from firesteel.testing.programs.running.ways import Action

__all__ = ["Hang", "RunningJob"]

_POLL_INTERVAL_S = 0.002
_STORAGE_S = 0.03


class Hang(Exception):
    """A job did not do in time what it must do."""


class RunningJob:
    """A job, from its start to its end."""

    def __init__(self, client: JobClient, program: Program, directory: Path, deadline: float):
        self._client = client
        self._program = program
        self._directory = directory
        self._deadline = deadline
        self._readers: list[threading.Thread] = []
        self.storage = self.storage_of(directory)

    @staticmethod
    def storage_of(directory: Path) -> StorageFaults:
        """Returns what makes the storage of a run misbehave."""
        return StorageFaults(directory / "storage-faults")

    @property
    def _handle(self) -> Any:
        return self._client._handle

    @property
    def is_over(self) -> bool:
        """Whether the job has ended."""
        return bool(self._client.get_job_status().result().is_globally_terminal_state())

    def collect(self, channel: str, records: list[Any]) -> None:
        """Has a thread append what the job sends to its client."""
        iterator = self._handle.collect_iterator(channel)

        def read() -> None:
            with suppress(FiresteelError):  # awaited elsewhere
                records.extend(iterator)

        reader = threading.Thread(target=read, name=channel, daemon=True)
        reader.start()
        self._readers.append(reader)

    def act(self, action: Action) -> bool:
        """Does something to the job when its time has come; returns whether it was done."""
        self.await_checkpoints(action.after)
        if self.is_over:
            return False
        if action.kind == "rescale":
            return self._rescale(int(action.value))
        if action.kind == "savepoint":
            taken = self._client.trigger_savepoint(str(self._directory / "savepoints"))
            self.await_(taken.done, "a savepoint did not come to an end")
            return True
        self.storage.set(action.value)
        if "once" not in action.value:
            time.sleep(_STORAGE_S)
            self.storage.clear()
        return True

    def _rescale(self, parallelism: int) -> bool:
        vertices = _rescalable(self._handle.job_graph, self._program)
        try:
            self._handle.rescale(dict.fromkeys(vertices, parallelism))
        except (InvalidProgramError, NotEnoughSlotsError):
            return False  # the job continues as it is
        return bool(vertices)

    def stop(self, *, drain: bool) -> str | None:
        """Stops the job with a savepoint and returns its path; None if the job had ended by itself."""
        while True:
            stopped = self._client.stop_with_savepoint(drain, str(self._directory / "savepoints"))
            self.await_(stopped.done, "the savepoint that ends the job did not come")
            try:
                path: str = stopped.result()
            except (CheckpointError, OSError):
                if self.is_over:
                    return None
                continue  # what was injected has hit the savepoint
            self.await_end()
            return path

    def await_end(self) -> None:
        """Waits for the end of the job; raises what it failed with."""
        result = self._client.get_job_execution_result()
        self.await_(result.done, "the job did not end")
        result.result()
        for reader in self._readers:
            reader.join(max(0.0, self._deadline - time.monotonic()))
            if reader.is_alive():
                raise Hang("the job has ended, but not what it collects")

    def await_checkpoints(self, count: int) -> None:
        """Waits for completed checkpoints, or the end of the job."""

        def enough() -> bool:
            completed: int = self._handle.checkpoint_statistics()["counts"]["completed"]
            return completed >= count or self.is_over

        self.await_(enough, f"{count} checkpoints did not complete")

    def await_(self, condition: Callable[[], bool], problem: str) -> None:
        """Waits for a condition until the deadline."""
        while not condition():
            if time.monotonic() > self._deadline:
                raise Hang(f"{problem} in time; the job is {self._client.get_job_status().result().name}")
            time.sleep(_POLL_INTERVAL_S)

    def give_up(self) -> None:
        """Cancels the job if it still runs."""
        self.storage.clear()
        with suppress(FiresteelError):
            if not self.is_over:
                self._client.cancel()


def _rescalable(job_graph: JobGraph, program: Program) -> set[str]:
    """Returns the vertices whose parallelism the program leaves open, as far as forward edges allow."""
    pinned = {uid for node in program.nodes for uid in node.pinned}
    fixed = {
        vertex.id for vertex in job_graph.vertices if any(operator.node.uid in pinned for operator in vertex.operators)
    }
    while True:
        tied = {
            end
            for edge in job_graph.edges
            if isinstance(edge.partitioner, ForwardPartitioner)
            for end in (edge.source_vertex, edge.target_vertex)
            if {edge.source_vertex, edge.target_vertex} & fixed
        }
        if tied <= fixed:
            return {vertex.id for vertex in job_graph.vertices} - fixed
        fixed |= tied
