"""B1: project on tuples, and Rows by field name through key_by, sum and window.

As a batch the sum has its last result per group only.
"""

from __future__ import annotations

from firesteel.common import Row, Types
from firesteel.datastream import DataStream, StreamExecutionEnvironment

PEOPLE = [("anna", 31, "x", True), ("ben", 25, "y", False), ("cleo", 40, "z", True)]


def build(env: StreamExecutionEnvironment) -> DataStream:
    people = env.from_collection(PEOPLE, Types.TUPLE([Types.STRING(), Types.INT(), Types.STRING(), Types.BOOLEAN()]))
    projected = people.project(3, 0, 0)
    row = Types.ROW_NAMED(["group", "age"], [Types.BOOLEAN(), Types.INT()])
    # one subtask, or the rows of a group might overtake each other
    ages = people.map(lambda person: Row(group=person[3], age=person[1]), row).set_parallelism(1)
    totals = ages.key_by(lambda row: row.group).sum("age").map(lambda row: ("row", row["group"], row.age))
    return projected.map(lambda value: ("projected", *value)).union(totals)
