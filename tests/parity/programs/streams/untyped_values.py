"""What print shows of untyped records of many kinds."""

import datetime
from collections import OrderedDict
from decimal import Decimal

from pyflink.common import Row
from pyflink.datastream import StreamExecutionEnvironment

VALUES = [
    1,
    -2.5,
    1e20,
    True,
    None,
    "text",
    "Ünïcode ☃",
    (1, "a", None),
    [1, [2]],
    {"a": {"b": 1}},
    {7},
    Row(1, "a"),
    Row(name="x", age=None),
    Decimal("1.10"),
    datetime.date(2020, 2, 29),
    datetime.datetime(2020, 2, 29, 1, 2, 3, 4),
    datetime.time(1, 2),
    datetime.timedelta(seconds=90),
    float("nan"),
    float("-inf"),
    -0.0,
    OrderedDict(a=1),
    complex(1, 2),
    range(3),
]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_collection(VALUES).map(lambda value: value).print()
    env.from_collection(VALUES).print("source")
    env.execute()


if __name__ == "__main__":
    main()
