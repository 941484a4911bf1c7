"""Arrays, lists and maps, nested, with None, through functions, state and keys."""

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor


def person_type():
    return Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])


PERSON = person_type()
CASES = [
    ("object_array", Types.OBJECT_ARRAY(PERSON), [[Row("a", 1), Row("b", None)], []]),
    ("object_array of tuples", Types.OBJECT_ARRAY(Types.TUPLE([Types.INT(), Types.STRING()])), [[(1, "x")]]),
    ("list", Types.LIST(Types.DOUBLE()), [[1.5, 2.25], []]),
    ("list of lists", Types.LIST(Types.LIST(Types.INT())), [[[1], [2, 3], []]]),
    ("list of maps", Types.LIST(Types.MAP(Types.STRING(), Types.INT())), [[{"a": 1}, {}]]),
    ("map of lists", Types.MAP(Types.STRING(), Types.LIST(Types.LONG())), [{"a": [1, 2], "b": []}]),
    ("map of rows", Types.MAP(Types.INT(), PERSON), [{1: Row("a", 2)}]),
    ("map of booleans", Types.MAP(Types.BOOLEAN(), Types.FLOAT()), [{False: 0.1, True: 0.5}]),
    ("basic array", Types.BASIC_ARRAY(Types.STRING()), [["a", None, ""]]),
    ("basic array of floats", Types.BASIC_ARRAY(Types.FLOAT()), [[0.1, None]]),
    ("primitive bytes", Types.PRIMITIVE_ARRAY(Types.BYTE()), [b"\x00\xff"]),
    ("primitive booleans", Types.PRIMITIVE_ARRAY(Types.BOOLEAN()), [[True, False]]),
    ("primitive floats", Types.PRIMITIVE_ARRAY(Types.FLOAT()), [[0.1, 2.0]]),
    ("in a row", Types.ROW([Types.LIST(Types.INT()), Types.MAP(Types.STRING(), Types.INT())]), [Row([1], {"a": None})]),
]


class Collect(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.list = runtime_context.get_state(ValueStateDescriptor("list", Types.LIST(Types.INT())))
        self.maps = runtime_context.get_list_state(ListStateDescriptor("maps", Types.MAP(Types.STRING(), Types.INT())))
        self.rows = runtime_context.get_map_state(MapStateDescriptor("rows", Types.INT(), person_type()))

    def process_element(self, value, ctx):
        self.list.update([*(self.list.value() or []), value])
        self.maps.add({str(value): value})
        self.rows.put(value, Row(str(value), value))
        yield f"{self.list.value()} {list(self.maps)} {[row[0] for row in self.rows.values()]}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1], Types.INT())
    for name, type_info, values in CASES:
        typed = numbers.flat_map(lambda _, values=values: values, type_info)
        typed.map(lambda value: f"{type(value).__name__} {value!r}", Types.STRING()).print(name)
        typed.rebalance().map(lambda value: repr(value), Types.STRING()).print(f"{name} sent")
    env.from_collection([1, 2, 3], Types.INT()).key_by(lambda x: x % 2).process(Collect(), Types.STRING()).print(
        "state"
    )
    words = env.from_collection(["ab", "ba", "ab"], Types.STRING())
    words.key_by(lambda word: list(word), Types.LIST(Types.STRING())).reduce(lambda a, b: a + b).print("keyed")
    env.execute()


if __name__ == "__main__":
    main()
