"""Functions and sinks that raise while a checkpoint asks them for what they hold, in jobs that tolerate failures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Encoder
from firesteel.common.errors import CheckpointError
from firesteel.connectors.base.at_least_once_sink import AtLeastOnceSink
from firesteel.connectors.base.two_phase_commit_sink import TwoPhaseCommitSink
from firesteel.connectors.files.sink import BucketAssigner, FileSink
from firesteel.datastream import MapFunction
from firesteel.datastream.state import ListStateDescriptor
from firesteel.testing import eventually
from tests.support.jobs.running_jobs import (
    HOUR,
    Gate,
    Probe,
    RunningJob,
    clock_of_today,
    environment,
    no_job_goes_on,  # noqa: F401 - a fixture
    phases,
    source,
    start,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*(was aborted|is restarted):firesteel.common.errors.FiresteelWarning")


class Once:
    """Raises an error, the first time there is a reason to."""

    def __init__(self, error: type[Exception]):
        self.error = error
        self.gate = Gate()

    def maybe(self, reason: Any) -> None:
        if reason and not self.gate.is_open:
            self.gate.open()
            raise self.error("not now")


class Posting(AtLeastOnceSink[list[int]]):
    """Takes its buffer and sends it: what it has taken when that fails is nowhere."""

    def __init__(self, written: Probe, once: Once):
        self.written = written
        self.once = once

    def open(self, context: Any) -> list[int]:
        return []

    def write(self, client: list[int], values: Sequence[int]) -> None:
        client.extend(values)

    def flush(self, client: list[int]) -> None:
        batch = list(client)
        client.clear()
        self.once.maybe(batch)
        for value in batch:
            self.written.add(value)


class Transactions(TwoPhaseCommitSink[list[int], list[int]]):
    """The same at least once more: its transaction is empty when preparing it has failed."""

    def __init__(self, written: Probe, once: Once):
        self.written = written
        self.once = once

    def begin(self, transaction_id: str) -> list[int]:
        return []

    def write(self, transaction: list[int], values: Sequence[int]) -> None:
        transaction.extend(values)

    def prepare(self, transaction: list[int]) -> list[int]:
        batch = list(transaction)
        transaction.clear()
        self.once.maybe(batch)
        return batch

    def commit(self, committable: list[int]) -> None:
        for value in committable:
            self.written.add(value)


class Moving(MapFunction):
    """Moves what it holds into its state when a checkpoint comes."""

    def __init__(self, written: Probe, once: Once):
        self.written = written
        self.once = once
        self.held: list[int] = []

    def initialize_state(self, context: Any) -> None:
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("seen"))

    def snapshot_state(self, context: Any) -> None:
        held, self.held = self.held, []
        self.once.maybe(held)
        self.state.add_all(held)

    def map(self, value: int) -> int:
        self.held.append(value)
        self.written.add(value)
        return value

    def close(self) -> None:
        self.written.add(("state", *self.state.get(), *self.held))


def job_with(written: Probe, once: Once, what: str, directory: Path, clock: Any) -> RunningJob:
    env = environment(directory, 1, clock, execution__checkpointing__tolerable_failed_checkpoints="3")
    stream = source(env, phases(clock, range(5), range(5, 8)))
    if what == "function":
        return start(stream.map(Moving(written, once)).uid("moving"))
    sink: Any = Posting(written, once) if what == "at least once" else Transactions(written, once)
    return start(stream.map(lambda value: value).uid("map"), sink)


@pytest.mark.parametrize("what", ["at least once", "exactly once", "function"])
def test_what_user_code_was_about_to_hand_over_comes_again(what: str, tmp_path: Path) -> None:
    """As in Flink its task fails, however many failures of checkpoints are tolerated."""
    clock, written = clock_of_today(), Probe()
    job = job_with(written, Once(ConnectionError), what, tmp_path, clock).runs(clock)
    assert isinstance(job.handle.trigger_checkpoint().exception(30), CheckpointError)
    clock.advance(HOUR)
    job.wait()
    assert job.attempt == 1
    if what == "function":
        assert written.values[-1] == ("state", *range(8))
    else:
        assert sorted(written.values) == list(range(8))


def test_an_error_of_ours_only_gives_up_the_checkpoint(tmp_path: Path) -> None:
    """So connectors say that they have kept everything for the next one."""
    clock, written = clock_of_today(), Probe()
    once = Once(CheckpointError)
    env = environment(tmp_path, 1, clock, execution__checkpointing__tolerable_failed_checkpoints="3")
    stream = source(env, phases(clock, range(5), range(5, 8)))
    job = start(stream.map(lambda value: value).uid("map"), Keeping(written, once)).runs(clock)
    assert isinstance(job.handle.trigger_checkpoint().exception(30), CheckpointError)
    clock.advance(HOUR)
    job.wait()
    assert job.attempt == 0
    assert sorted(written.values) == list(range(8))


def test_a_file_that_could_not_be_written_does_not_keep_later_checkpoints_from_completing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sink has to begin anew: no checkpoint could have the file, and its records would never be visible."""
    clock, full, fsync = clock_of_today(), Once(OSError), os.fsync

    def fsync_once_not(descriptor: int) -> None:
        full.maybe("/out/.inprogress/" in str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync_once_not)
    env = environment(tmp_path, 1, clock, execution__checkpointing__tolerable_failed_checkpoints="1000")
    stream = source(env, phases(clock, ["a/1", "b/2"], ["b/3"], ["b/4"]))
    sink = FileSink.for_row_format(tmp_path / "out", Encoder.simple_string_encoder())
    buckets = BucketAssigner.by_field(lambda text: text[0], "bucket")
    job = start(stream, sink.with_bucket_assigner(buckets).build()).runs(clock)
    assert isinstance(job.handle.trigger_checkpoint().exception(30), CheckpointError)
    eventually(lambda: job.attempt == 1)
    clock.advance(HOUR)
    job.runs(clock).checkpoint()
    clock.advance(HOUR)
    job.wait()
    lines = [line for file in (tmp_path / "out").glob("bucket=*/part-*") for line in file.read_text().splitlines()]
    assert sorted(lines) == ["a/1", "b/2", "b/3", "b/4"]


class Keeping(Posting):
    """Keeps its buffer until it is sent."""

    def flush(self, client: list[int]) -> None:
        self.once.maybe(client)
        super().flush(client)
