"""get_name, get_type, names and descriptions."""

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2], Types.INT())
    print(numbers.get_type())
    untyped = numbers.map(lambda x: x)
    print(untyped.get_name(), untyped.get_type())
    named = numbers.map(lambda x: (x, 1.0), Types.TUPLE([Types.INT(), Types.DOUBLE()])).name("pairs").uid("pairs")
    print(named.get_name(), named.get_type())
    rows = named.map(lambda x: Row(x[0], None), Types.ROW([Types.INT(), Types.STRING()]))
    print(rows.get_type())
    print(numbers.filter(lambda x: True).get_name())
    print(numbers.flat_map(lambda x: [["x"]], Types.LIST(Types.STRING())).get_type())
    print(numbers.map(lambda x: {"x": x}, Types.MAP(Types.STRING(), Types.LONG())).get_type())
    print(numbers.set_description("some numbers").set_parallelism(1).get_name())
    named.print()
    env.execute("types")


if __name__ == "__main__":
    main()
