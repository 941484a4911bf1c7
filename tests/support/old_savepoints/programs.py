"""The programs whose savepoints and checkpoints are in tests/golden/savepoints.

Stored state fits the program that wrote it, so these programs do not change: uids, states, types, sources and sinks
stay. For something new there is a new program with fixtures of its own. Files are in the working directory, which the
paths name without saying where it is: fixtures can be restored anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from firesteel.common import Encoder, Row, WatermarkStrategy
from firesteel.common.time import Time
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.base import IteratorSource, Source, TwoPhaseCommitSink
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)
from firesteel.datastream.connectors.hybrid_source import HybridSource
from firesteel.datastream.connectors.nexmark import NexmarkSource
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.window import (
    CountTrigger,
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.support.old_savepoints.functions import (
    Buffer,
    ByGap,
    Describe,
    JoinAtEnd,
    NumberedPairs,
    OnMark,
    Pending,
    PricedAtEnd,
    RememberOwnClasses,
    RememberScriptClasses,
    SeenPrices,
    Threshold,
    TimersOfKeys,
    ValueSum,
)

__all__ = ["OUTPUT", "PROGRAMS", "WITH_FILES", "Lines", "prepare_input"]

WORKING_DIRECTORY = "/proc/self/cwd"
INPUT, OUTPUT = f"{WORKING_DIRECTORY}/input", f"{WORKING_DIRECTORY}/output"
LINES = {"a.txt": 12, "b.txt": 5}
"""The input files, and their lines."""

MARK = "mark"
RECORDS = [
    ("a", 3, 1),
    ("b", 5, 4),
    ("a", 4, 12),
    ("c", 9, 3),
    ("b", 1, 15),
    (MARK, 0, 11),
    ("a", 2, 14),
    ("b", 7, 22),
    ("c", 6, 9),
    # most savepoints are here
    ("a", 8, 26),
    ("c", 2, 21),
    (MARK, 0, 24),
    ("b", 3, 17),
    ("a", 1, 33),
    ("c", 5, 41),
    ("b", 2, 44),
    ("d", 1, 47),
]
"""Keys, values and event times; a mark is a watermark."""


def prepare_input() -> None:
    """Writes the input files into the working directory."""
    Path(INPUT).mkdir()
    for name, count in LINES.items():
        lines = [f"{name} {number}" for number in range(count)]
        (Path(INPUT) / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _records(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_generator(OnMark).with_timestamp_assigner(lambda record, _: record[2])
    marked = env.from_collection(RECORDS).uid("records").assign_timestamps_and_watermarks(strategy).uid("event-time")
    return marked.filter(lambda record: record[0] != MARK).set_parallelism(1)


def _by_name(env: StreamExecutionEnvironment) -> Any:
    return _records(env).key_by(lambda record: record[0])


def own_classes(env: StreamExecutionEnvironment) -> DataStream:
    """Every kind of keyed state, with and without time-to-live, of Firesteel's own classes; rows as keys."""
    return _records(env).key_by(lambda record: Row(name=record[0], size=1)).process(RememberOwnClasses()).uid("values")


def script_classes(env: StreamExecutionEnvironment) -> DataStream:
    """Values and map keys of classes that no module has."""
    return _by_name(env).process(RememberScriptClasses()).uid("values")


def timers(env: StreamExecutionEnvironment) -> DataStream:
    """Timers of both time domains."""
    return _by_name(env).process(TimersOfKeys()).uid("timers")


def windows(env: StreamExecutionEnvironment) -> DataStream:
    """Windows of every kind; of some the contents are values of the records, of others accumulators."""
    keyed = _by_name(env)
    ten = Time.milliseconds(10)
    tumbling = keyed.window(TumblingEventTimeWindows.of(ten)).allowed_lateness(20)
    sliding = keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(20), ten))
    sessions = keyed.window(EventTimeSessionWindows.with_gap(ten))
    dynamic = keyed.window(DynamicEventTimeSessionWindows.with_dynamic_gap(ByGap()))
    counted = keyed.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(3)))
    pairs = keyed.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2)))
    threshold = keyed.window(GlobalWindows.create()).trigger(Threshold(8))
    results = [
        tumbling.process(Describe("tumbling")).uid("tumbling"),
        sliding.aggregate(ValueSum(), Describe("sliding")).uid("sliding"),
        sessions.process(Describe("sessions", merges=True)).uid("sessions"),
        dynamic.aggregate(ValueSum(), Describe("dynamic", merges=True)).uid("dynamic"),
        counted.process(Describe("counted")).uid("counted"),
        threshold.process(Describe("threshold")).uid("threshold"),
        pairs.process(Describe("count")).uid("count"),
        keyed.count_window(3, 2).process(Describe("count every 2")).uid("count-sliding"),
        keyed.reduce(lambda first, second: (first[0], first[1] + second[1], second[2])).uid("reduced").map(repr),
    ]
    return results[0].union(*results[1:])


def connected(env: StreamExecutionEnvironment) -> DataStream:
    """Two keyed inputs, and a buffer in operator state behind them."""
    left = _records(env)
    right = env.from_collection([(f"{name}", number) for number in range(6) for name in "abc"]).uid("right")
    joined = left.connect(right).key_by(lambda record: record[0], lambda pair: pair[0]).process(JoinAtEnd())
    return joined.uid("joined").union(left.map(Buffer(3)).uid("buffer").set_parallelism(1).filter(bool))


def broadcast(env: StreamExecutionEnvironment) -> DataStream:
    """Broadcast state beside a keyed and beside another stream."""
    prices = env.from_collection([("a", 2), ("b", 7), ("c", 9), ("a", 3), ("end", 0)]).uid("prices").set_parallelism(1)
    sales = _records(env)
    keyed = sales.key_by(lambda record: record[0]).connect(prices.broadcast(*PricedAtEnd.STATES)).process(PricedAtEnd())
    seen = sales.connect(prices.broadcast(*SeenPrices.STATES)).process(SeenPrices())
    return keyed.uid("priced").union(seen.uid("seen").set_parallelism(1))


class Evens(IteratorSource):
    """Even numbers, in two splits."""

    blocking = False

    def splits(self) -> Iterable[str]:
        return "0", "100"

    def read(self, split: str, position: int | None) -> Iterator[tuple[int, int]]:
        first = int(split)
        for number in range(first if position is None else position, first + 30, 2):
            yield number, number + 2


def sources(env: StreamExecutionEnvironment) -> DataStream:
    """Sources that generate their records, with event time."""
    generated: dict[str, Source[Any]] = {
        "numbers": NumberSequenceSource(1, 40),
        "generated": DataGeneratorSource(lambda index: index * index, 40),
        "evens": Evens(),
        "nexmark": NexmarkSource(40),
    }
    streams = []
    for name, source in generated.items():
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: 1)
        stream = env.from_source(source, strategy, name).uid(name)
        streams.append(stream.map(lambda value, name=name: (name, str(value))))
    return streams[0].union(*streams[1:]).key_by(lambda pair: pair[0]).process(NumberedPairs()).uid("numbered")


def _lines_source() -> FileSource:
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), INPUT).build()


def hybrid(env: StreamExecutionEnvironment) -> DataStream:
    """Files first, then numbers from a source that is made when its turn comes, which checkpoints keep."""
    builder = HybridSource.builder(_lines_source())
    source = builder.add_source(lambda _context: NumberSequenceSource(1, 20), _lines_source().get_boundedness()).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "hybrid").uid("hybrid")
    return stream.map(lambda value: ("all", str(value))).key_by(lambda pair: pair[0]).process(NumberedPairs()).uid("n")


class ByFile(BucketAssigner):
    """A bucket for each input file."""

    def get_bucket_id(self, element: Any, context: Any) -> str:
        return str(element).partition(".")[0]


def files(env: StreamExecutionEnvironment) -> None:
    """Lines of files to two file sinks: in one each checkpoint ends the files, in the other they stay open."""
    lines = env.from_source(_lines_source(), WatermarkStrategy.no_watermarks(), "lines").uid("lines")
    config = OutputFileConfig.builder().with_part_suffix(".txt").build()
    for name, policy in {
        "rolled": RollingPolicy.on_checkpoint_rolling_policy(),
        "open": RollingPolicy.default_rolling_policy(),
    }.items():
        builder = FileSink.for_row_format(f"{OUTPUT}/{name}", Encoder.simple_string_encoder())
        builder = builder.with_bucket_assigner(ByFile()).with_output_file_config(config).with_rolling_policy(policy)
        lines.sink_to(builder.build()).uid(name)


class Lines(TwoPhaseCommitSink[Any, str]):
    """Writes a file in each transaction."""

    def begin(self, transaction_id: str) -> Any:
        Path(OUTPUT).mkdir(exist_ok=True)
        return (Path(OUTPUT) / f".{transaction_id}").open("x", encoding="utf-8")

    def write(self, transaction: Any, values: Sequence[Any]) -> None:
        transaction.writelines(f"{value}\n" for value in values)

    def prepare(self, transaction: Any) -> str:
        transaction.close()
        return Path(transaction.name).name

    def commit(self, committable: str) -> None:
        hidden = Path(OUTPUT) / committable
        if hidden.exists():
            hidden.rename(hidden.with_name(committable[1:]))

    def undo(self, committable: str) -> None:
        """What the crash of a job before the commit would have left."""
        (Path(OUTPUT) / committable[1:]).rename(Path(OUTPUT) / committable)


def transactions(env: StreamExecutionEnvironment) -> None:
    """Numbers to a two-phase-commit sink."""
    env.from_sequence(1, 20).uid("numbers").map(str).sink_to(Lines()).uid("lines")


def in_flight(env: StreamExecutionEnvironment) -> DataStream:
    """Rows and watermarks on their way from one task to others."""
    strategy = WatermarkStrategy.for_generator(OnMark).with_timestamp_assigner(lambda record, _: record[2])
    numbers = [(MARK if number % 20 == 0 else f"k{number % 5}", number, number) for number in range(600)]
    stream = env.from_collection(numbers).uid("numbers").assign_timestamps_and_watermarks(strategy).uid("event-time")
    rows = stream.map(lambda record: Row(name=record[0], pad=Pending(record[1]).text, number=record[1]))
    keyed = rows.set_parallelism(1).key_by(lambda row: row.name)
    tumbling = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(30)))
    return tumbling.process(Describe("tumbling", "number")).uid("tumbling")


PROGRAMS: dict[str, Callable[[StreamExecutionEnvironment], DataStream | None]] = {
    each.__name__: each
    for each in (
        own_classes,
        script_classes,
        timers,
        windows,
        connected,
        broadcast,
        sources,
        hybrid,
        files,
        transactions,
        in_flight,
    )
}
"""By name. A program without a stream writes to files."""

WITH_FILES = {"hybrid", "files", "transactions"}
"""The programs that read or write files."""
