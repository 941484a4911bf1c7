"""A job that fails half way, goes on from its last checkpoint, and still writes every result exactly once."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from firesteel.common import Configuration, Encoder, Types
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.state import ValueStateDescriptor

RECORDS = 40_000
KEYS = 10


class CountEveryThousand(KeyedProcessFunction):
    """Says every thousand records of a key how many there were. The first attempt fails on its way."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.first_attempt = runtime_context.get_attempt_number() == 0

    def process_element(self, value: int, ctx: Any) -> Iterable[str]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if self.first_attempt and value == RECORDS * 3 // 4:
            raise RuntimeError("something went wrong")
        if count % 1000 == 0:
            yield f"key {value % KEYS}: {count}"


def environment(directory: Path, parallelism: int) -> StreamExecutionEnvironment:
    settings = Configuration()
    settings.set_string("execution.checkpointing.interval", "200 ms")
    settings.set_string("execution.checkpointing.dir", str(directory / "checkpoints"))
    settings.set_string("restart-strategy.type", "fixed-delay")
    settings.set_string("restart-strategy.fixed-delay.delay", "100 ms")
    return StreamExecutionEnvironment.get_execution_environment(settings).set_parallelism(parallelism)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        env = environment(directory, parallelism=2)
        sink = FileSink.for_row_format(str(directory / "out"), Encoder.simple_string_encoder()).build()
        numbers = env.from_sequence(1, RECORDS)
        numbers.key_by(lambda n: n % KEYS).process(CountEveryThousand()).uid("counts").sink_to(sink)
        env.execute("exactly once")
        lines = [line for file in (directory / "out").rglob("part-*") for line in file.read_text().splitlines()]
        print(f"{len(lines)} results, {len(set(lines))} different ones, expected {RECORDS // 1000}")


if __name__ == "__main__":
    main()
