"""Records that are objects of the program's own classes."""

import enum
from dataclasses import dataclass, field, replace

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Item:
    name: str
    color: Color
    prices: list = field(default_factory=list)


class Merge(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.item = runtime_context.get_state(ValueStateDescriptor("item", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        item = self.item.value()
        merged = value if item is None else replace(item, prices=item.prices + value.prices)
        self.item.update(merged)
        yield merged


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    items = env.from_collection([("a", 1, 2.5), ("b", 2, 1.0), ("a", 1, 3.5)]).map(
        lambda item: Item(item[0], Color(item[1]), [item[2]])
    )
    merged = items.key_by(lambda item: item.name).process(Merge())
    merged.map(lambda item: f"{item.name} {item.color.name} {item.prices}", Types.STRING()).print("objects")
    merged.map(lambda item: item.color).map(lambda color: (color, color is Color.RED)).print("enum")
    env.execute()


if __name__ == "__main__":
    main()
