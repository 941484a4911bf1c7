"""F7: number sequences read in parallel: each number once, whatever the parallelism; empty and single ones too."""

from __future__ import annotations

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource


def build(env: StreamExecutionEnvironment) -> DataStream:
    small = env.from_sequence(-2, 3).map(lambda number: f"small {number}")
    single = env.from_sequence(7, 7).map(lambda number: f"single {number}")
    large = env.from_source(NumberSequenceSource(1, 10_000), WatermarkStrategy.no_watermarks(), "large", Types.LONG())
    # one result per key, once it has all of its 1,000 numbers: more than one buffer's worth of them
    sums = (
        large.map(lambda number: (number % 10, number, 1))
        .key_by(lambda record: record[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]))
        .filter(lambda record: record[2] == 1000)
        .map(lambda record: f"sum of those that end in {record[0]}: {record[1]}")
    )
    return small.union(single, sums)
