"""Warns of sensors that have been silent for a minute, with event-time timers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from firesteel.common import WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor

Reading = tuple[int, str, float]

READINGS: list[Reading] = [  # second, sensor, degrees
    (0, "boiler", 71.0),
    (5, "cellar", 12.5),
    (40, "boiler", 71.5),
    (90, "boiler", 72.0),
    (140, "cellar", 12.4),
]


class SilenceAlert(KeyedProcessFunction):
    """Each reading moves its sensor's timer; a timer that fires was not moved in time."""

    def __init__(self, seconds: int):
        self._patience = seconds * 1000

    def open(self, runtime_context: RuntimeContext) -> None:
        self._alarm = runtime_context.get_state(ValueStateDescriptor("alarm"))

    def process_element(self, value: Reading, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        if self._alarm.value() is not None:
            timers.delete_event_time_timer(self._alarm.value())
        self._alarm.update(ctx.timestamp() + self._patience)
        timers.register_event_time_timer(self._alarm.value())

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[str]:
        self._alarm.clear()
        silent_since = (timestamp - self._patience) // 1000
        yield f"{timestamp // 1000:>4} s  {ctx.get_current_key()} silent since {silent_since} s"


class EveryReading(WatermarkGenerator):
    """Event time follows the readings one by one, for a stream that is in order."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(event_timestamp - 1)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patience", type=int, default=60, metavar="SECONDS", help="before an alert (default: 60)")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_generator(EveryReading).with_timestamp_assigner(lambda reading: reading[0] * 1000)
    readings = env.from_collection(READINGS).assign_timestamps_and_watermarks(strategy)
    readings.key_by(lambda reading: reading[1]).process(SilenceAlert(options.patience)).print()
    env.execute("silent sensors")


if __name__ == "__main__":
    main()
