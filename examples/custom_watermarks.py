"""Takes watermarks from the data: the sender says in the stream itself how far it has come."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from firesteel.common import WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from firesteel.datastream import OutputTag, ProcessWindowFunction, StreamExecutionEnvironment, TimeWindow
from firesteel.datastream.window import TumblingEventTimeWindows

Event = tuple[str, int, int]

EVENTS: list[Event] = [  # meter, second, kilowatts; "complete" means: nothing of that second or before will follow
    ("north", 1, 5),
    ("south", 4, 2),
    ("north", 12, 7),
    ("north", 3, 4),  # nine seconds out of order, and still in time: nobody has said that 0-10 s are complete
    ("complete", 10, 0),
    ("south", 15, 1),
    ("south", 8, 6),  # too late
    ("complete", 20, 0),
]

LATE = OutputTag("late")


class FromTheSender(WatermarkGenerator):
    """A punctuated generator: it emits when a record says so, and nothing at intervals."""

    def on_event(self, event: Event, event_timestamp: int, output: WatermarkOutput) -> None:
        if event[0] == "complete":
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class Total(ProcessWindowFunction[Event, str, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Event]
    ) -> Iterable[str]:
        window, watermark = context.window(), context.current_watermark() // 1000
        total = sum(kilowatts for _, _, kilowatts in elements)
        yield f"{window.start // 1000:>2}-{window.end // 1000} s  {key}  {total:>2} kW  (watermark {watermark} s)"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_generator(FromTheSender).with_timestamp_assigner(lambda event: event[1] * 1000)
    totals = (
        env.from_collection(EVENTS)
        .assign_timestamps_and_watermarks(strategy)
        .filter(lambda event: event[0] != "complete")
        .key_by(lambda event: event[0])
        .window(TumblingEventTimeWindows.of(10_000))
        .side_output_late_data(LATE)
        .process(Total())
    )
    totals.print()
    totals.get_side_output(LATE).print("late")
    env.execute("watermarks from the sender")


if __name__ == "__main__":
    main()
