"""B1: sum, min, max, min_by, max_by and reduce on one keyed stream.

min and max change the field alone and keep the others of the first record; min_by and max_by keep a whole record, the
first of equals. As a batch each of them emits one result per key, the last.
"""

from __future__ import annotations

from typing import Any

from firesteel.common import Types
from firesteel.datastream import DataStream, ReduceFunction, StreamExecutionEnvironment

RECORDS = [
    ("a", 5, "first"),
    ("b", 7, "first"),
    ("a", 3, "second"),
    ("a", 3, "third"),
    ("b", 9, "second"),
    ("a", 8, "fourth"),
    ("b", 7, "third"),
]


class Join(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] * 10 + value2[1], f"{value1[2]}+{value2[2]}"


def build(env: StreamExecutionEnvironment) -> DataStream:
    row = Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING()])
    keyed = env.from_collection(RECORDS, row).key_by(lambda record: record[0], Types.STRING())
    results = {
        "sum": keyed.sum(1),
        "min": keyed.min(1),
        "max": keyed.max(1),
        "min_by": keyed.min_by(1),
        "max_by": keyed.max_by(1),
        "reduce": keyed.reduce(Join()),
        "reduce by a lambda": keyed.reduce(lambda a, b: (a[0], a[1] - b[1], b[2])),
    }
    labelled = [stream.map(lambda value, name=name: (name, *value)) for name, stream in results.items()]
    return labelled[0].union(*labelled[1:])


def key_of(result: Any) -> Any:
    return result[0], result[1]
