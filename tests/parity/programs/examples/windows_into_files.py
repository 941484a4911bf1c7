"""Windows of four kinds over the same events, each written into a file."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from pyflink.common import Encoder, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, OutputFileConfig, RollingPolicy
from pyflink.datastream.window import (
    EventTimeSessionWindows,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
)

RESULT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.INT()])


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp) -> int:
        return int(value[1])


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element: tuple) -> int:
        return element[1] % 5 + 1


class Count(ProcessWindowFunction[tuple, tuple, str, TimeWindow]):
    def process(self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable) -> Iterable:
        return [(key, context.window().start, context.window().end, len(list(elements)))]


def main():
    events = [("hi", 1), ("hi", 2), ("hi", 3), ("yo", 3), ("hi", 4), ("hi", 8), ("hi", 9), ("yo", 15), ("hi", 15)]
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    stream = env.from_collection(events, type_info=Types.TUPLE([Types.STRING(), Types.INT()]))
    keyed = stream.assign_timestamps_and_watermarks(strategy).key_by(lambda e: e[0], key_type=Types.STRING())
    assigners = {
        "tumbling": TumblingEventTimeWindows.of(Time.milliseconds(5)),
        "sliding": SlidingEventTimeWindows.of(Time.milliseconds(5), Time.milliseconds(2)),
        "session": EventTimeSessionWindows.with_gap(Time.milliseconds(5)),
        "dynamic": EventTimeSessionWindows.with_dynamic_gap(Gap()),
    }
    with tempfile.TemporaryDirectory() as directory:
        for name, assigner in assigners.items():
            counts = keyed.window(assigner).process(Count(), RESULT)
            sink = (
                FileSink.for_row_format(base_path=f"{directory}/{name}", encoder=Encoder.simple_string_encoder())
                .with_output_file_config(OutputFileConfig.builder().with_part_prefix(name).build())
                .with_rolling_policy(RollingPolicy.default_rolling_policy())
                .build()
            )
            counts.sink_to(sink=sink)
        keyed.count_window(3).reduce(lambda a, b: (a[0], a[1] + b[1])).print("counted")
        env.execute()
        for name in assigners:
            for path in Path(directory, name).rglob("*-*"):
                if path.is_file():
                    for line in path.read_text(encoding="utf-8").splitlines():
                        print(name, line)


if __name__ == "__main__":
    main()
