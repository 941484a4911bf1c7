"""Keyed streams: keys after map and filter, key_by of key_by, union and connect of keyed streams."""

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, KeySelector, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor

PAIR = Types.TUPLE([Types.STRING(), Types.INT()])


class Numbered(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        yield f"{ctx.get_current_key()}#{number} {value}"


class First(KeySelector):
    def get_key(self, value):
        return value[0]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    pairs = env.from_collection([("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5)], PAIR)
    keyed = pairs.key_by(First(), Types.STRING())
    keyed.process(Numbered(), Types.STRING()).print("keyed")
    keyed.key_by(lambda pair: pair[1] % 2 == 0, Types.BOOLEAN()).process(Numbered(), Types.STRING()).print("again")
    keyed.filter(lambda pair: pair[1] > 1).key_by(First()).process(Numbered(), Types.STRING()).print("filtered")
    keyed.union(pairs.key_by(First(), Types.STRING())).map(str, Types.STRING()).print("union")
    keyed.project(1, 0).print("projected")
    for name in ("sum", "min", "max"):
        getattr(keyed, name)(1).print(name)
    for name in ("min_by", "max_by"):
        getattr(keyed, name)(1).print(name)
    keyed.map(lambda pair: pair[1] * 10, Types.INT()).print("mapped")
    keyed.flat_map(lambda pair: [pair[0]] * pair[1], Types.STRING()).key_by(lambda word: word).count_window(4).reduce(
        lambda a, b: a + b
    ).print("counted")
    env.execute()


if __name__ == "__main__":
    main()
