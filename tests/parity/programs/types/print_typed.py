"""What print shows of typed values."""

import datetime
from decimal import Decimal

from pyflink.common import Instant, Row, Types
from pyflink.datastream import StreamExecutionEnvironment

DAY = datetime.date(2021, 3, 4)
MOMENT = datetime.datetime(2021, 3, 4, 5, 6, 7, 890000)
CASES = [
    ("boolean", Types.BOOLEAN(), [True, False]),
    ("byte", Types.BYTE(), [1, -128, 127]),
    ("short", Types.SHORT(), [-32768, 32767]),
    ("int", Types.INT(), [0, -(2**31), 2**31 - 1]),
    ("long", Types.LONG(), [2**63 - 1, -(2**63)]),
    ("float", Types.FLOAT(), [1.1, 1e10, 0.0001, 3.4e38, 1.17e-38, 0.1, 16777216.0, 1e39]),
    ("double", Types.DOUBLE(), [1.1, 1e7, 9999999.0, 1e-3, 9.9e-4, 1e21, 5e-324, float("nan"), float("inf"), -0.0]),
    ("string", Types.STRING(), ["text", "", "ü ☃ \U0001f600"]),
    ("big_dec", Types.BIG_DEC(), [Decimal("1.10"), Decimal("1E+3"), Decimal("-0.000001"), Decimal("1E-10")]),
    ("sql_date", Types.SQL_DATE(), [DAY]),
    ("sql_time", Types.SQL_TIME(), [datetime.time(5, 6, 7)]),
    ("sql_timestamp", Types.SQL_TIMESTAMP(), [MOMENT, MOMENT.replace(microsecond=0)]),
    ("instant", Types.INSTANT(), [Instant.of_epoch_milli(1500), Instant(5, 0)]),
    ("list", Types.LIST(Types.INT()), [[1, 2], []]),
    ("map", Types.MAP(Types.STRING(), Types.DOUBLE()), [{"a": 1.0}, {}]),
    ("tuple", Types.TUPLE([Types.STRING(), Types.DOUBLE(), Types.BOOLEAN()]), [("a", 1e20, True)]),
    (
        "nested",
        Types.TUPLE([Types.TUPLE([Types.INT(), Types.FLOAT()]), Types.LIST(Types.STRING())]),
        [((1, 0.1), ["x"])],
    ),
    ("row", Types.ROW([Types.INT(), Types.STRING(), Types.DOUBLE()]), [Row(1, None, 1e20)]),
    ("named", Types.ROW_NAMED(["a", "b"], [Types.BOOLEAN(), Types.FLOAT()]), [Row(a=True, b=0.1), Row(None, 2.0)]),
    ("nested row", Types.ROW([Types.ROW([Types.INT()]), Types.TUPLE([Types.INT()])]), [Row(Row(1), (2,))]),
    ("row in tuple", Types.TUPLE([Types.ROW([Types.INT(), Types.STRING()]), Types.INT()]), [(Row(1, None), 2)]),
    ("map of lists", Types.MAP(Types.INT(), Types.LIST(Types.BOOLEAN())), [{1: [True]}]),
    ("pickled", Types.PICKLED_BYTE_ARRAY(), [{"a": 1}, (1, None)]),
]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for name, type_info, values in CASES:
        env.from_collection(list(range(len(values))), Types.INT()).map(
            lambda i, values=values: values[i], output_type=type_info
        ).print(name)
    env.execute()


if __name__ == "__main__":
    main()
