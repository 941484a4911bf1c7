"""Streams that are split, joined and connected: side outputs, union, co-map and co-flat-map."""

from pyflink.common import Types
from pyflink.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    OutputTag,
    ProcessFunction,
    StreamExecutionEnvironment,
)

SMALL = OutputTag("small", Types.INT())
TEXTS = OutputTag("texts", Types.STRING())


class Split(ProcessFunction):
    def process_element(self, value, ctx: "ProcessFunction.Context"):
        if value < 10:
            yield SMALL, value
        elif value % 7 == 0:
            yield TEXTS, f"seven times {value // 7}"
            yield value
        else:
            yield value


class Label(CoMapFunction):
    def map1(self, value):
        return f"number {value + 0.5}"

    def map2(self, value):
        return f"text {value!r}"


class Letters(CoFlatMapFunction):
    def flat_map1(self, value):
        yield from range(value % 3)

    def flat_map2(self, value):
        for word in value.split():
            yield len(word)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 5, 10, 14, 25, 70, 9, 11], Types.INT())
    large = numbers.process(Split(), Types.INT())
    small, texts = large.get_side_output(SMALL), large.get_side_output(TEXTS)
    large.print("large")
    small.union(large.map(lambda value: -value, Types.INT())).print("union")
    large.connect(texts).map(Label(), Types.STRING()).print("co-map")
    small.connect(texts).flat_map(Letters(), Types.INT()).print("co-flat-map")
    env.execute()


if __name__ == "__main__":
    main()
