"""Sink test harness, with checkpoints and failures."""

from __future__ import annotations

from typing import Any

from firesteel.datastream.functions import SinkFunction
from firesteel.datastream.streams.sink_function import SinkFunctionSink
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.model.serialization import deserialize_batch
from firesteel.runtime.operators.sink import SinkOperator, SinkSpec
from firesteel.spi.sink import Sink
from firesteel.testing.clock import FakeClock
from firesteel.testing.harness import OneInputHarness

__all__ = ["SinkHarness"]


class SinkHarness(OneInputHarness):
    """Runs one subtask of a sink, or of a SinkFunction: records in, and the external effects of the sink.

    With ``checkpointing`` it commits what a snapshot contained when it is notified that the checkpoint is complete;
    otherwise at :meth:`finish`. A crash is a harness that a test no longer uses. The next attempt is a new harness with
    a higher ``attempt``, the same ``job_id``, and a snapshot to restore from.
    """

    def __init__(
        self, sink: Sink | SinkFunction, *, clock: FakeClock | None = None, checkpointing: bool = True, **options: Any
    ):
        if isinstance(sink, SinkFunction):
            sink = SinkFunctionSink(sink)
        if not isinstance(sink, Sink):
            raise TypeError(f"A Sink or a SinkFunction is needed, got {sink!r}.")
        super().__init__(SinkSpec(sink), clock=clock, name=type(sink).__name__, **options)
        self._chained.checkpointing = checkpointing
        self.sent: list[tuple[str, Any]] = []
        """What went to the client: pairs of a channel and a payload."""
        operator = self._chained.operator
        assert isinstance(operator, SinkOperator)
        operator.connect(self._task.subtask, self._task.parallelism, self._send, lambda _channel: True)

    @staticmethod
    def _check_spec(spec: OperatorSpec) -> None:
        assert spec.get_sink() is not None

    def _send(self, channel: str, payload: Any) -> None:
        self.sent.append((channel, deserialize_batch(payload).values))
