"""Records of every shape printed by a keyed stream, a union and a side output."""

from pyflink.common import Row, Types
from pyflink.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

PAIR = Types.TUPLE([Types.FLOAT(), Types.STRING()])
ROW = Types.ROW([Types.FLOAT(), Types.STRING()])
SIDE = OutputTag("side", ROW)


class Split(ProcessFunction):
    def process_element(self, value, ctx):
        yield value
        yield SIDE, Row(*value)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    pairs = env.from_collection([1, 2], Types.INT()).map(lambda x: (x / 3, str(x)), PAIR)
    pairs.key_by(lambda pair: pair[1]).print()
    pairs.union(pairs).print("union")
    split = pairs.process(Split(), PAIR)
    split.print("split")
    split.get_side_output(SIDE).print("side")
    pairs.key_by(lambda pair: pair[1]).reduce(lambda a, b: a).print("reduce")
    env.execute()


if __name__ == "__main__":
    main()
