"""Connected streams: co-map, co-flat-map and co-process with side outputs, keyed or not, of different types."""

from pyflink.common import Types
from pyflink.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    OutputTag,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

ODD = OutputTag("odd", Types.INT())


class Texts(CoMapFunction):
    def map1(self, value):
        return f"number {value}"

    def map2(self, value):
        return f"word {value}"


class Parts(CoFlatMapFunction):
    def flat_map1(self, value):
        return [str(digit) for digit in range(value)]

    def flat_map2(self, value):
        yield from value


class Split(CoProcessFunction):
    def process_element1(self, value, ctx):
        if value % 2:
            yield ODD, value
        else:
            yield str(value)

    def process_element2(self, value, ctx):
        yield f"{value} of both"


class Counts(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", Types.STRING(), Types.INT()))

    def process_element1(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield f"{ctx.get_current_key()} numbers {self.count.value()}"

    def process_element2(self, value, ctx):
        self.seen.put(value, (self.seen.get(value) or 0) + 1)
        yield f"{ctx.get_current_key()} words {sorted(self.seen.items())}"


class CountMap(CoMapFunction):
    def open(self, runtime_context: RuntimeContext):
        self.first = runtime_context.get_state(ValueStateDescriptor("first", Types.INT()))

    def map1(self, value):
        self.first.update((self.first.value() or 0) + value)
        return self.first.value(), "number"

    def map2(self, value):
        return len(value), "word"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3, 3], Types.INT())
    words = env.from_collection(["a", "bb", "ccc", "a"], Types.STRING())
    connected = numbers.connect(words)
    connected.map(Texts(), Types.STRING()).print("map")
    connected.flat_map(Parts(), Types.STRING()).print("flat_map")
    split = connected.process(Split(), Types.STRING())
    split.print("process")
    split.get_side_output(ODD).print("odd")
    keyed = connected.key_by(lambda number: number, lambda word: len(word), Types.INT())
    keyed.process(Counts(), Types.STRING()).print("keyed")
    pair = Types.TUPLE([Types.INT(), Types.STRING()])
    numbers.key_by(lambda number: number).connect(words.key_by(lambda word: len(word))).map(CountMap(), pair).print(
        "keyed map"
    )
    env.execute()


if __name__ == "__main__":
    main()
