"""union of several streams, of a stream with itself, and project."""

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment

TRIPLE = Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    first = env.from_collection([(1, "a", 1.5), (2, "b", 2.0)], TRIPLE)
    second = env.from_collection([(3, "c", 1e10)], TRIPLE)
    third = env.from_collection([(4, "d", 0.001), (5, "e", 0.0001)], TRIPLE)
    united = first.union(second, third)
    united.print("all")
    united.project(2, 0).print("projected")
    first.project(1).print("single")
    first.union(first).map(lambda t: t[0], output_type=Types.INT()).print("twice")
    env.execute()


if __name__ == "__main__":
    main()
