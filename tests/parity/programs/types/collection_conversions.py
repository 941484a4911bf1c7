"""from_collection with values that do not quite fit their type: integers keep their lowest bits."""

import datetime

from pyflink.common import Instant, Row, Types
from pyflink.datastream import StreamExecutionEnvironment

MOMENT = datetime.datetime(2021, 3, 4, 5, 6, 7, 890000)
CASES = [
    ("byte", Types.BYTE(), [300, -129, 128]),
    ("short", Types.SHORT(), [70000]),
    ("int", Types.INT(), [2**31, 2**40 + 5, -(2**31) - 1]),
    ("float", Types.FLOAT(), [0.1, 1e39]),
    ("sql_timestamp", Types.SQL_TIMESTAMP(), [MOMENT]),
    ("sql_time", Types.SQL_TIME(), [MOMENT.time()]),
    ("sql_date", Types.SQL_DATE(), [MOMENT]),
    ("instant", Types.INSTANT(), [Instant(1, 5000000)]),
    ("tuple", Types.TUPLE([Types.INT(), Types.FLOAT()]), [(1, 0.1), [2**32 + 7, 0.5]]),
    ("row", Types.ROW([Types.FLOAT(), Types.BYTE()]), [Row(0.1, 300), [0.1, 3], (0.1, None)]),
    ("named", Types.ROW_NAMED(["a", "b"], [Types.FLOAT(), Types.SHORT()]), [{"a": 1.0, "b": 2}, Row(b=70000, a=0.1)]),
    ("map", Types.MAP(Types.STRING(), Types.FLOAT()), [{"a": 0.1}]),
    ("basic_array", Types.BASIC_ARRAY(Types.FLOAT()), [[0.1]]),
    ("primitive_array", Types.PRIMITIVE_ARRAY(Types.FLOAT()), [[0.1]]),
    ("object_array", Types.OBJECT_ARRAY(Types.STRING()), [["a"]]),
]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for name, type_info, values in CASES:
        env.from_collection(values, type_info).map(lambda v: f"{type(v).__name__} {v!r}", Types.STRING()).print(name)
    env.execute()


if __name__ == "__main__":
    main()
