"""Checkpoints of jobs whose source has given many records when the function chained to it becomes slow."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.config.configuration import Configuration
from firesteel.connectors.generators.number_sequence import NumberSequenceSource
from firesteel.datastream import CheckpointListener, MapFunction, RuntimeContext
from firesteel.testing import test_environment

RECORDS = 7000
SLOW_FROM = 5000
BY_NUMBER = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number: number)


class SlowAndFailing(MapFunction, CheckpointListener):
    """Is fast until batches are large, then slow; fails when a checkpoint was taken while it was slow."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._attempt = runtime_context.get_attempt_number()
        self._is_slow = False
        self._completed = 0

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._completed += self._is_slow

    def map(self, value: int) -> tuple[int, int]:
        if value >= SLOW_FROM and self._attempt == 0:
            self._is_slow = True
            time.sleep(0.01)
            if self._completed >= 2:
                # the first of them may have been triggered before
                raise ValueError("now")
        return value, self._attempt


@pytest.mark.parametrize("watermarks", ["none", "source", "behind it"])
def test_the_job_goes_back_to_a_checkpoint_amid_the_batch(watermarks: str, tmp_path: Path) -> None:
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.interval": "20 ms",
        "execution.checkpointing.dir": str(tmp_path),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }.items():
        configuration.set_string(key, value)
    env = test_environment(1, configuration=configuration)
    strategy = BY_NUMBER if watermarks == "source" else WatermarkStrategy.no_watermarks()
    stream = env.from_source(NumberSequenceSource(0, RECORDS - 1), strategy, "numbers")
    if watermarks == "behind it":
        stream = stream.assign_timestamps_and_watermarks(BY_NUMBER)
    with stream.map(SlowAndFailing()).execute_and_collect("amid") as results:
        seen = list(results)
    assert [value for value, _ in seen] == list(range(RECORDS))
    after = [value for value, attempt in seen if attempt == 1]
    assert after[0] > SLOW_FROM, "it went back to a record in the middle"
