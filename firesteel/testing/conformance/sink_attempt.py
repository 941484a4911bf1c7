"""All writers of a sink in one attempt of a job, without the job."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import cloudpickle

from firesteel.process import fault_points
from firesteel.runtime.model.metrics import MetricRegistry
from firesteel.runtime.operators.sink import SinkOperator
from firesteel.spi.execution_traits import EPOCHS
from firesteel.spi.sink import Sink
from firesteel.testing.conformance.guarded_thread import GuardedThread
from firesteel.testing.sink_harness import SinkHarness
from firesteel.testing.snapshots import HarnessSnapshot

__all__ = ["SinkAttempt", "StandaloneContext", "copy_of"]


def copy_of(value: Any) -> Any:
    """What arrives in another process."""
    return pickle.loads(cloudpickle.dumps(value, 5))


class SinkAttempt:
    """Some subtasks of a sink that run side by side; records are dealt out to them in turn.

    The operator is that of the runtime: what is prepared, stored, committed and committed again is decided there. All
    calls are made in one thread, as in a slot.
    """

    def __init__(
        self,
        sink: Sink,
        parallelism: int,
        *,
        job_id: str,
        number: int = 0,
        restored: HarnessSnapshot | None = None,
        checkpointing: bool = True,
        timeout_s: float = 30.0,
    ) -> None:
        self.parallelism = parallelism
        self.closed = False
        self._next = 0
        self._thread = GuardedThread(timeout_s)
        self._harnesses: list[SinkHarness] = []
        try:
            for subtask in range(parallelism):
                harness = SinkHarness(
                    copy_of(sink),
                    checkpointing=checkpointing,
                    parallelism=parallelism,
                    subtask=subtask,
                    attempt=number,
                    job_id=job_id,
                    run_id=job_id,
                )
                self._harnesses.append(harness)
                harness.initialize_state(restored)
                self._call("opening a writer", harness.open)
        except BaseException:
            with suppress(BaseException):
                self.close()
            raise

    def write(self, records: Sequence[Any]) -> None:
        """Writes records, a few at a time."""
        step = 3
        for begin in range(0, len(records), step):
            operator = self._operators[self._next % self.parallelism]
            self._next += 1
            self._call("write_batch()", operator.process_batch, list(records[begin : begin + step]), None)

    def snapshot(self, checkpoint_id: int) -> HarnessSnapshot:
        """Takes a checkpoint of all writers."""
        snapshots = [self._call("a checkpoint", h.snapshot, checkpoint_id) for h in self._harnesses]
        combined: HarnessSnapshot = copy_of(HarnessSnapshot.combine(*snapshots))
        return combined

    def complete(self, checkpoint_id: int, subtasks: int | None = None) -> None:
        """Notifies writers, or only the first ones, that the checkpoint is complete."""
        for harness in self._harnesses[:subtasks]:
            self._call("committing", harness.notify_checkpoint_complete, checkpoint_id)

    def abort(self, checkpoint_id: int) -> None:
        """Notifies all writers that the checkpoint is aborted."""
        for harness in self._harnesses:
            self._call("notify_checkpoint_aborted()", harness.notify_checkpoint_aborted, checkpoint_id)

    def complete_with_fault(self, checkpoint_id: int, point: str) -> None:
        """The checkpoint is complete, but the first subtask fails right before or right behind its commit."""
        fault_points.arm(f"{point}=raise")
        try:
            self.complete(checkpoint_id, 1)
        except OSError:
            pass
        finally:
            fault_points.arm("")

    def finish(self) -> None:
        """The input ends."""
        for harness in self._harnesses:
            self._call("the end of the input", harness.finish)

    def finish_with_checkpoint(self, checkpoint_id: int) -> None:
        """The input ends, and with it the job: a last checkpoint commits what is left."""
        self.finish()
        self.snapshot(checkpoint_id)
        self.complete(checkpoint_id)
        self.close()

    def close(self) -> None:
        """Closes all writers, once, as a job does at its end and after a failure."""
        if self.closed:
            return
        self.closed = True
        failure: BaseException | None = None
        for harness in self._harnesses:
            try:
                self._call("SinkWriter.close()", harness.close)
            except BaseException as error:  # noqa: BLE001 - the others are closed first
                failure = failure or error
        self._thread.close()
        if failure is not None:
            raise failure

    @property
    def _operators(self) -> list[SinkOperator]:
        operators = [harness._chained.operator for harness in self._harnesses]
        return [operator for operator in operators if isinstance(operator, SinkOperator)]

    def _call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._thread.call(what, function, *arguments)


class StandaloneContext:
    """What a writer sees of a task whose committables are committed in another process."""

    subtask_index = 0
    parallelism = 1
    attempt_number = 0
    execution = EPOCHS

    def __init__(self) -> None:
        self.sink_id = uuid.uuid4().hex[:16]
        self.attempt_id = uuid.uuid4().hex[:16]
        self._metrics = MetricRegistry()

    def get_metrics_group(self) -> MetricRegistry:
        """Metrics that are never read."""
        return self._metrics

    def send_to_client(self, channel: str, payload: Any) -> None:
        """There is no client."""
