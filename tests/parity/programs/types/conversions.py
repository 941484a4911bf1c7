"""What a typed value is after it has left Python: after key_by, a sink or a new task."""

import datetime
from decimal import Decimal

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

MOMENT = datetime.datetime(2021, 3, 4, 5, 6, 7, 890000)
CASES = [
    ("float", Types.FLOAT(), [0.1, 1e39, 3, True]),
    ("double", Types.DOUBLE(), [0.1, 3, True, Decimal("0.1")]),
    ("int", Types.INT(), [True, 2.9, -2.9]),
    ("long", Types.LONG(), [2.9, False]),
    ("boolean", Types.BOOLEAN(), [1, 0, 2]),
    ("big_dec", Types.BIG_DEC(), [1, 1.5, Decimal("1.50")]),
    ("sql_timestamp", Types.SQL_TIMESTAMP(), [MOMENT]),
    ("sql_time", Types.SQL_TIME(), [MOMENT.time()]),
    ("sql_date", Types.SQL_DATE(), [MOMENT]),
    ("tuple", Types.TUPLE([Types.FLOAT(), Types.INT()]), [(0.1, 2.5), (1, True), (1.0, 2, 3)]),
    ("row", Types.ROW([Types.FLOAT(), Types.STRING()]), [Row(0.1, "x"), Row(None, None)]),
    ("named", Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.FLOAT()]), [Row(1, 0.1), Row(b=2, a=3)]),
    ("list", Types.LIST(Types.FLOAT()), [[0.1, 2]]),
    ("map", Types.MAP(Types.STRING(), Types.FLOAT()), [{"a": 0.1, "b": None}]),
    ("basic_array", Types.BASIC_ARRAY(Types.INT()), [[1.9, None, True]]),
    ("bytes", Types.PRIMITIVE_ARRAY(Types.BYTE()), [bytearray(b"ab")]),
]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for name, type_info, values in CASES:
        typed = env.from_collection(list(range(len(values))), Types.INT()).map(
            lambda i, values=values: values[i], output_type=type_info
        )
        typed.key_by(lambda value: 0).map(lambda v: f"{type(v).__name__} {v!r}", Types.STRING()).print(name)
        typed.map(lambda v: f"{type(v).__name__} {v!r}", Types.STRING()).print(f"{name} chained")
    env.execute()


if __name__ == "__main__":
    main()
