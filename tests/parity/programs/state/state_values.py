"""Typed state: what comes back of values that do not quite fit the type."""

import datetime
from decimal import Decimal

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor

CASES = [
    ("FLOAT", Types.FLOAT(), 1.1),
    ("DOUBLE", Types.DOUBLE(), 1),
    ("INT", Types.INT(), True),
    ("LONG", Types.LONG(), 2.9),
    ("BOOLEAN", Types.BOOLEAN(), 1),
    ("BIG_DEC", Types.BIG_DEC(), Decimal("1.50")),
    ("SQL_TIMESTAMP", Types.SQL_TIMESTAMP(), datetime.datetime(2020, 1, 2, 3, 4, 5, 678901)),
    ("SQL_DATE", Types.SQL_DATE(), datetime.date(2020, 1, 2)),
    ("SQL_TIME", Types.SQL_TIME(), datetime.time(3, 4, 5, 678901)),
    ("ROW_NAMED", Types.ROW_NAMED(["a", "b"], [Types.FLOAT(), Types.STRING()]), Row(0.1, None)),
    ("TUPLE", Types.TUPLE([Types.FLOAT(), Types.INT()]), (0.1, 7)),
    ("PICKLED", Types.PICKLED_BYTE_ARRAY(), {"a": [1, 1.1]}),
    ("MAP", Types.MAP(Types.STRING(), Types.FLOAT()), {"a": 0.1}),
    ("BASIC_ARRAY", Types.BASIC_ARRAY(Types.FLOAT()), [0.1, None]),
]


class Store(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.states = {}
        for name, type_info, _ in CASES:
            self.states[name] = (
                runtime_context.get_state(ValueStateDescriptor(f"value {name}", type_info)),
                runtime_context.get_list_state(ListStateDescriptor(f"list {name}", type_info)),
            )

    def process_element(self, value, ctx):
        state, values = self.states[value]
        if state.value() is None:
            case = next(case for name, _, case in CASES if name == value)
            state.update(case)
            values.add(case)
        else:
            yield f"{value} {state.value()!r} {list(values)!r}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    names = [name for name, _, _ in CASES]
    env.from_collection(names + names, Types.STRING()).key_by(lambda name: 0).process(Store(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
