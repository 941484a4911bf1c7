"""Windows as values: equality, merging, text."""

from pyflink.common import Time
from pyflink.datastream.window import (
    CountWindow,
    GlobalWindow,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)


def main():
    first, second = TimeWindow(0, 10), TimeWindow(5, 15)
    print(first, second, first == TimeWindow(0, 10), first != second)
    print(first.max_timestamp(), first.intersects(second), first.cover(second))
    print(TimeWindow.get_window_start_with_offset(17, 3, 5))
    print(CountWindow(3), CountWindow(3) == CountWindow(3), CountWindow(2).max_timestamp())
    print(GlobalWindow.get() == GlobalWindow.get(), GlobalWindow.get().max_timestamp())
    print(sorted([TimeWindow(5, 9), TimeWindow(1, 3)]) if hasattr(TimeWindow, "__lt__") else "unordered")
    print(
        TumblingEventTimeWindows.of(Time.seconds(5)), TumblingProcessingTimeWindows.of(Time.minutes(1)).is_event_time()
    )


if __name__ == "__main__":
    main()
