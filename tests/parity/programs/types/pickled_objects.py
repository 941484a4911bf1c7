"""Objects of any class in streams, state and tuples: Types.PICKLED_BYTE_ARRAY and no type."""

import collections
import datetime
import enum
import uuid
from dataclasses import dataclass
from typing import NamedTuple

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Order:
    number: int
    lines: tuple = ()


class Point(NamedTuple):
    x: int
    y: int


class Last(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value, ctx):
        last = self.last.value()
        self.last.update(value)
        self.all.add(value)
        yield f"{ctx.get_current_key()} {last} {len(list(self.all))}"


OBJECTS = [
    Order(1, ("a", 2)),
    Point(1, 2),
    Color.BLUE,
    {"a": {1, 2}},
    datetime.timedelta(days=1, seconds=2),
    uuid.UUID(int=5),
    collections.Counter("aab"),
    collections.OrderedDict(b=1, a=2),
    frozenset([1]),
    range(3),
    slice(1, 2),
    complex(1, 2),
    bytearray(b"array"),
    ...,
]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    objects = env.from_collection(OBJECTS)
    objects.print("untyped")
    objects.map(lambda o: o, Types.PICKLED_BYTE_ARRAY()).map(lambda o: type(o).__name__, Types.STRING()).print("kind")
    mixed = Types.TUPLE([Types.INT(), Types.PICKLED_BYTE_ARRAY()])
    objects.map(lambda o: (7, o), mixed).map(lambda pair: f"{pair[0]} {pair[1]!r}", Types.STRING()).print("in a tuple")
    objects.key_by(lambda o: type(o).__name__).process(Last(), Types.STRING()).print("state")
    objects.key_by(lambda o: isinstance(o, tuple)).map(lambda o: str(o), Types.STRING()).print("keyed")
    env.execute()


if __name__ == "__main__":
    main()
