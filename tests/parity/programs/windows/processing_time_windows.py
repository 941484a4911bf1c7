"""Windows of processing time, which fire by the number of their records."""

from pyflink.common import Time, Types
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.window import (
    CountTrigger,
    DynamicProcessingTimeSessionWindows,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    TumblingProcessingTimeWindows,
)


class Contents(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        long = window.end - window.start
        recent = abs(context.current_processing_time() - window.start) <= long
        yield f"{key} {sorted(elements)} {recent} {context.current_watermark() < 0}"


class Gap(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return 600_000 + len(element)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    words = env.from_collection(["ab", "cd", "ae", "cf", "ag", "ah", "ci"], Types.STRING())
    keyed = words.key_by(lambda word: word[0], Types.STRING())
    windows = {
        "tumbling": TumblingProcessingTimeWindows.of(Time.days(5000)),
        "session": ProcessingTimeSessionWindows.with_gap(Time.hours(1)),
        "dynamic": DynamicProcessingTimeSessionWindows.with_dynamic_gap(Gap()),
    }
    for name, assigner in windows.items():
        twos = keyed.window(assigner).trigger(PurgingTrigger.of(CountTrigger.of(2)))
        twos.process(Contents(), Types.STRING()).print(name)
    counts = keyed.window(TumblingProcessingTimeWindows.of(Time.days(5000))).trigger(CountTrigger.of(3))
    counts.reduce(lambda one, other: one + other).print("reduced")
    env.execute()


if __name__ == "__main__":
    main()
