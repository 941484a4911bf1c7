"""Nested tuples, rows, lists and maps of everything, with None where it may be, as print shows them."""

import datetime
from decimal import Decimal

from pyflink.common import Instant, Row, RowKind, Types
from pyflink.datastream import StreamExecutionEnvironment

DAY = datetime.date(1969, 12, 31)
MOMENT = datetime.datetime(2021, 12, 31, 23, 59, 59, 5000)
SINGLE = [
    (Types.BOOLEAN(), True, False),
    (Types.SHORT(), -1, 0),
    (Types.LONG(), 2**40, -5),
    (Types.FLOAT(), 1e-10, 33333334.0),
    (Types.DOUBLE(), -1e300, 0.1),
    (Types.STRING(), "ä,b=c]", ""),
    (Types.BIG_DEC(), Decimal("-0.00"), Decimal("7E+2")),
    (Types.SQL_DATE(), DAY, MOMENT.date()),
    (Types.SQL_TIME(), MOMENT.time(), datetime.time(0, 0)),
    (Types.SQL_TIMESTAMP(), MOMENT, datetime.datetime(2000, 1, 1)),
    (Types.INSTANT(), Instant.of_epoch_milli(1_600_000_000_123), Instant.of_epoch_milli(0)),
]
INSIDE_TUPLES = [case for case in SINGLE if case[0] != Types.INSTANT()]


def cases():
    for type_info, first, second in INSIDE_TUPLES:
        yield Types.TUPLE([type_info, type_info]), (first, second)
        yield Types.TUPLE([Types.TUPLE([type_info]), Types.LIST(type_info)]), ((first,), [second, first])
        yield Types.TUPLE([Types.INT(), Types.ROW([type_info, type_info])]), (1, Row(first, None))
        yield Types.TUPLE([Types.MAP(Types.STRING(), type_info), Types.INT()]), ({"k": first}, 1)
    for type_info, first, second in SINGLE:
        yield Types.ROW([type_info, type_info]), Row(first, second)
        yield Types.ROW_NAMED(["x", "y"], [type_info, type_info]), Row(y=None, x=first)
        yield Types.ROW([Types.LIST(type_info), Types.MAP(Types.INT(), type_info)]), Row([first, second], {1: first})
        yield Types.ROW([Types.ROW([type_info])]), Row(Row(first))
    yield Types.TUPLE([Types.ROW([Types.INT()])]), (Row.of_kind(RowKind.UPDATE_BEFORE, 1),)
    yield Types.LIST(Types.LIST(Types.STRING())), [["a"], [], ["b", "c"]]
    yield Types.MAP(Types.LONG(), Types.MAP(Types.LONG(), Types.BOOLEAN())), {1: {2: True}}
    yield Types.LIST(Types.TUPLE([Types.INT(), Types.FLOAT()])), [(1, 0.1), (2, 1.0)]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for number, (type_info, value) in enumerate(cases()):
        stream = env.from_collection([0], Types.INT()).map(lambda _, value=value: value, output_type=type_info)
        stream.print(f"{number} {type_info}")
    env.execute()


if __name__ == "__main__":
    main()
