"""A program that asks for more than its parts can promise is refused when it is submitted."""

from __future__ import annotations

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors import SocketSource
from firesteel.connectors.client.discarding_sink import DiscardingSink
from firesteel.spi.sink import DeliveryGuarantee, Sink, SinkWriter
from firesteel.testing import TestingSource

EXACTLY_ONCE, AT_LEAST_ONCE, NONE = DeliveryGuarantee
CHECKPOINTS = {"execution.checkpointing.interval": "10 s"}


class Writer(SinkWriter):
    def write_batch(self, values, timestamps):
        pass


class Promising(Sink):
    def __init__(self, guarantee, needs_checkpoints=False):
        self.guarantee = guarantee
        self._needs_checkpoints = needs_checkpoints

    def create_writer(self, context):
        return Writer()

    def get_delivery_guarantee(self):
        return self.guarantee

    def needs_checkpoints(self):
        return self._needs_checkpoints


def submit(env, sink, *, source=None, asked=NONE):
    stream = env.from_source(source or TestingSource([1]), WatermarkStrategy.no_watermarks(), "numbers")
    stream.sink_to(sink).name("out").require_delivery_guarantee(asked)
    env.execute()


def test_a_sink_that_gives_too_little_is_refused(in_process_env):
    with pytest.raises(
        InvalidProgramError, match=r"'Sink: out' \(.*test_guarantees.py.*\) provides AT_LEAST_ONCE, but EX"
    ):
        submit(in_process_env(1, CHECKPOINTS), Promising(AT_LEAST_ONCE), asked=EXACTLY_ONCE)


def test_the_configuration_asks_of_all_sinks(in_process_env):
    settings = {**CHECKPOINTS, "pipeline.required-delivery-guarantee": "at-least-once"}
    with pytest.raises(InvalidProgramError, match="provides NONE, but AT_LEAST_ONCE is required"):
        submit(in_process_env(1, settings), Promising(NONE))
    submit(in_process_env(1, settings), Promising(EXACTLY_ONCE))


def test_enough_is_enough(in_process_env):
    submit(in_process_env(1, CHECKPOINTS), Promising(EXACTLY_ONCE), asked=EXACTLY_ONCE)
    submit(in_process_env(1), Promising(EXACTLY_ONCE), asked=EXACTLY_ONCE)  # it ends by itself
    submit(in_process_env(1), Promising(NONE))


def test_a_stream_without_end_needs_checkpoints(in_process_env):
    unbounded = TestingSource([1], bounded=False)
    with pytest.raises(InvalidProgramError, match="must provide AT_LEAST_ONCE, but checkpointing is disabled"):
        submit(in_process_env(1), Promising(EXACTLY_ONCE), source=unbounded, asked=AT_LEAST_ONCE)
    with pytest.raises(InvalidProgramError, match="commits records with checkpoints, but checkpointing is"):
        submit(in_process_env(1), Promising(EXACTLY_ONCE, needs_checkpoints=True), source=unbounded)


def test_barriers_that_are_not_aligned_give_no_exactly_once(in_process_env):
    settings = {**CHECKPOINTS, "execution.checkpointing.mode": "AT_LEAST_ONCE"}
    with pytest.raises(InvalidProgramError, match=r"execution\.checkpointing\.mode is AT_LEAST_ONCE"):
        submit(in_process_env(1, settings), Promising(EXACTLY_ONCE), asked=EXACTLY_ONCE)


def test_a_source_that_cannot_be_read_again_is_named(in_process_env):
    source = SocketSource("localhost", 1)
    with pytest.raises(InvalidProgramError, match="'Source: numbers' cannot be rewound"):
        submit(in_process_env(1, CHECKPOINTS), Promising(EXACTLY_ONCE), source=source, asked=EXACTLY_ONCE)


def test_something_else_than_a_guarantee(in_process_env):
    stream = in_process_env(1).from_collection([1])
    with pytest.raises(TypeError, match="A DeliveryGuarantee is needed, got 'exactly-once'"):
        stream.sink_to(DiscardingSink()).require_delivery_guarantee("exactly-once")
