"""from_collection with a type: what functions get."""

import datetime
from decimal import Decimal

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment

MOMENT = datetime.datetime(2021, 3, 4, 5, 6, 7, 890000)
CASES = [
    ("boolean", Types.BOOLEAN(), [True, False]),
    ("byte", Types.BYTE(), [1, -128]),
    ("short", Types.SHORT(), [1]),
    ("int", Types.INT(), [1, 2**31 - 1]),
    ("long", Types.LONG(), [1, 2**62]),
    ("float", Types.FLOAT(), [1.5, 0.1]),
    ("double", Types.DOUBLE(), [1.5, 0.1]),
    ("string", Types.STRING(), ["a", ""]),
    ("big_dec", Types.BIG_DEC(), [Decimal("1.10"), Decimal("1E+3")]),
    ("sql_date", Types.SQL_DATE(), [datetime.date(2021, 3, 4)]),
    ("sql_time", Types.SQL_TIME(), [datetime.time(5, 6, 7)]),
    ("sql_timestamp", Types.SQL_TIMESTAMP(), [MOMENT]),
    ("basic_array", Types.BASIC_ARRAY(Types.INT()), [[1, 2]]),
    ("primitive_array", Types.PRIMITIVE_ARRAY(Types.INT()), [[1, 2]]),
    ("map", Types.MAP(Types.STRING(), Types.LONG()), [{"a": 1}]),
    ("tuple", Types.TUPLE([Types.STRING(), Types.DOUBLE()]), [("a", 1.5)]),
    ("row", Types.ROW([Types.INT(), Types.STRING()]), [Row(1, "a"), Row(2, None), (3, "b")]),
    (
        "named",
        Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]),
        [Row(a=1, b="x"), Row(b="y", a=2), (4, None)],
    ),
    ("nested", Types.ROW([Types.ROW([Types.INT()]), Types.TUPLE([Types.INT()])]), [Row(Row(1), (2,))]),
]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for name, type_info, values in CASES:
        env.from_collection(values, type_info).map(lambda v: f"{type(v).__name__} {v!r}", Types.STRING()).print(name)
    env.execute()


if __name__ == "__main__":
    main()
