"""One program for history and for what comes in now: it backfills files on Spark's shuffle, then goes live, pipelined.

The payments are in a log: a directory for each partition, with numbered segment files that are never changed. First
the job runs in epochs and stops by itself when all that is there has been read (``available-now``). Its last checkpoint
says how far it came. From there the same job goes on at another parallelism, pipelined, while payments keep coming in.
The results are exactly-once across the switch, which is checked at the end.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from firesteel.common import Configuration, Encoder, JobClient, Types, WatermarkStrategy
from firesteel.connectors.base.split_enumerators import OwnedSplitEnumerator
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSink, RollingPolicy
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.spi.source import (
    Boundedness,
    InputStatus,
    ReaderContext,
    ReaderOutput,
    Source,
    SourceReader,
    SplitEnumeratorContext,
)

CUSTOMERS = ("Ada", "Barbara", "Edsger", "Grace", "Ken", "Leslie", "Niklaus")
PARTITIONS = 4
PER_SEGMENT = 250


@dataclass(frozen=True)
class Partition:
    """A split: one directory of the log, and the segment that is to be read next."""

    split_id: str
    segment: int = 0


class LogSource(Source[Partition]):
    """Reads the segments of all partitions, and waits for more: it never ends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def get_boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> OwnedSplitEnumerator[Partition]:
        return OwnedSplitEnumerator(context, [Partition(str(number)) for number in range(PARTITIONS)])

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: list[Partition]
    ) -> OwnedSplitEnumerator[Partition]:
        return OwnedSplitEnumerator(context, state)

    def create_reader(self, context: ReaderContext) -> LogReader:
        return LogReader(self._directory, context)


class LogReader(SourceReader[Partition]):
    """Gives out one segment at a time; segments appear all at once, so what is there is complete."""

    def __init__(self, directory: Path, context: ReaderContext) -> None:
        self._directory = directory
        self._context = context
        self._partitions: dict[str, Partition] = {}

    def start(self) -> None:
        self._context.send_split_request()

    def add_splits(self, splits: Sequence[Partition]) -> None:
        self._partitions.update({split.split_id: split for split in splits})

    def notify_no_more_splits(self) -> None:
        """There are always the same partitions."""

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        for split in self._partitions.values():
            path = segment_path(self._directory, split.split_id, split.segment)
            if path.exists():
                self._partitions[split.split_id] = replace(split, segment=split.segment + 1)
                output.collect(split.split_id, path.read_text().splitlines())
                return InputStatus.MORE_AVAILABLE
        return InputStatus.NOTHING_AVAILABLE

    def available_at(self) -> float:
        return time.monotonic() + 0.05

    def snapshot_state(self, checkpoint_id: int) -> list[Partition]:
        return list(self._partitions.values())


class Account(KeyedProcessFunction):
    """Numbers the payments of a customer, and adds them up."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self._cents = runtime_context.get_state(ValueStateDescriptor("cents", Types.LONG()))

    def process_element(self, value: tuple[str, int], ctx: Any) -> Iterable[str]:
        count = (self._count.value() or 0) + 1
        cents = (self._cents.value() or 0) + value[1]
        self._count.update(count)
        self._cents.update(cents)
        yield f"{value[0]} {count} {cents}"


def build(directory: Path, parallelism: int, **settings: str) -> StreamExecutionEnvironment:
    """The program. Which execution it gets is a matter of settings alone."""
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(directory / "checkpoints"))
    for key, value in settings.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    log = LogSource(directory / "log")
    sink = (
        FileSink.for_row_format(str(directory / "out"), Encoder.simple_string_encoder())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())  # what a run has read is there when it ends
        .build()
    )
    (
        env.from_source(log, WatermarkStrategy.no_watermarks(), "payments")
        .uid("payments")
        .map(parse)
        .key_by(lambda payment: payment[0])
        .process(Account())
        .uid("accounts")
        .sink_to(sink)
        .uid("results")
    )
    return env


def parse(line: str) -> tuple[str, int]:
    customer, cents = line.split()
    return customer, int(cents)


def segment_path(log: Path, partition: str, segment: int) -> Path:
    return log / partition / f"{segment:06}.txt"


def write_segments(log: Path, first: int, last: int) -> int:
    """Adds segments to all partitions; returns how many payments that makes."""
    for segment in range(first, last):
        for partition in range(PARTITIONS):
            start = (segment * PARTITIONS + partition) * PER_SEGMENT
            lines = (f"{CUSTOMERS[n % len(CUSTOMERS)]} {100 + n % 900}\n" for n in range(start, start + PER_SEGMENT))
            path = segment_path(log, str(partition), segment)
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".writing")
            unfinished.write_text("".join(lines))
            os.replace(unfinished, path)  # noqa: PTH105 - from now on it is there, whole
    return (last - first) * PARTITIONS * PER_SEGMENT


def results(directory: Path) -> list[tuple[str, int, int]]:
    """What the job has committed."""
    lines = [line for file in (directory / "out").glob("[!.]*/part-*") for line in file.read_text().splitlines()]
    return [(customer, int(count), int(cents)) for customer, count, cents in map(str.split, lines)]


def check(directory: Path, payments: int) -> str:
    """Compares the results with the log itself: each payment counts once, and no total is off by a cent."""
    expected: dict[str, list[int]] = {customer: [0, 0] for customer in CUSTOMERS}
    for number in range(payments):
        account = expected[CUSTOMERS[number % len(CUSTOMERS)]]
        account[0] += 1
        account[1] += 100 + number % 900
    found = results(directory)
    numbered = {(customer, count) for customer, count, _ in found}
    totals: dict[str, tuple[int, int]] = {}
    for customer, count, cents in found:
        totals[customer] = max(totals.get(customer, (0, 0)), (count, cents))
    right = sum(totals.get(customer) == tuple(account) for customer, account in expected.items())
    lost, twice = payments - len(numbered), len(found) - len(numbered)
    return f"{payments:,} payments: {lost} lost, {twice} twice, {right} of {len(CUSTOMERS)} totals are right"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--history", type=int, default=40, help="segments per partition that are there at first")
    parser.add_argument("--live", type=int, default=8, help="segments per partition that come in later")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        log = directory / "log"

        payments = write_segments(log, 0, options.history)
        print(f"Backfill: {payments:,} payments, on Spark's shuffle, parallelism 2", flush=True)
        env = build(directory, 2, **{"execution.exchange": "spark", "execution.epoch.trigger": "available-now"})
        job_id = env.execute("accounts").get_job_id()
        print(f"  {len(results(directory)):,} results; it has stopped by itself, and holds no slots", flush=True)

        print("Live: from its last checkpoint, pipelined, parallelism 3", flush=True)
        env = build(
            directory,
            3,
            **{
                "execution.state-recovery.path": str(directory / "checkpoints" / str(job_id)),
                "execution.checkpointing.interval": "500 ms",
            },
        )
        client = env.execute_async("accounts")
        comes_in = threading.Thread(target=add_slowly, args=(log, options.history, options.live))
        comes_in.start()
        payments += options.live * PARTITIONS * PER_SEGMENT
        while len(results(directory)) < payments and not is_over(client):
            pass
        comes_in.join()
        client.stop_with_savepoint(False, str(directory / "savepoints")).result()
        client.get_job_execution_result().result()
        print(f"  {len(results(directory)):,} results; stopped with a savepoint", flush=True)
        print(check(directory, payments))


def is_over(client: JobClient) -> bool:
    """Waits a moment for the end of a job; raises what it failed with."""
    try:
        client.get_job_execution_result().result(0.2)
    except TimeoutError:
        return False
    return True


def add_slowly(log: Path, first: int, segments: int) -> None:
    """What the world does while the job runs."""
    for segment in range(first, first + segments):
        write_segments(log, segment, segment + 1)
        time.sleep(0.25)


if __name__ == "__main__":
    main()
