"""from_collection without a type: what functions get, and what is printed."""

import datetime
from decimal import Decimal

from pyflink.common import Row
from pyflink.datastream import StreamExecutionEnvironment

COLLECTIONS = {
    "int": [1, -(2**70)],
    "float": [0.1, float("inf"), -0.0],
    "str": ["a", "", "é\t"],
    "bool": [True, False],
    "none": [None],
    "list": [[1, "a", None], []],
    "tuple": [(1, "a"), ((1, 2), [3])],
    "dict": [{"a": 1, 2: [3]}],
    "set": [{1}],
    "row": [Row(1, "a"), Row(a=1, b=Row(2))],
    "decimal": [Decimal("1.50")],
    "date": [datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4, 5, 6), datetime.time(1, 2)],
    "mixed": [1, "a", None, 2.5, (1,)],
    "class": [int],
}


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for name, values in COLLECTIONS.items():
        stream = env.from_collection(values)
        stream.print(name)
        stream.map(lambda value: f"{type(value).__name__} {value!r}").print(f"{name} mapped")
    env.from_collection(list("abc")).print("letters")
    env.execute()


if __name__ == "__main__":
    main()
