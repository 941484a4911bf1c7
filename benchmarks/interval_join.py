"""State and cost of an interval join over a long stream: what it buffers must not grow.

``python -m benchmarks.interval_join`` feeds both sides of one operator, without a job around it, with one record of
each side per millisecond of event time, and reads after each part what is buffered. The cost is processor time. Write
buffers are RocksDB's: they take deleted rows too, until they are full. ``--memory`` is the memory of RocksDB in MB.
With ``--json FILE`` it writes the figures to a file.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from firesteel.common import Configuration
from firesteel.datastream import ProcessJoinFunction
from firesteel.runtime.operators.interval_join import BUFFERS
from firesteel.testing import TwoInputHarness, harness_for, test_environment

BOUND_MS = 2_000
DELAY_MS = 1_000
BATCH = 1_000
"""Records of one side between two watermarks."""


@dataclass(frozen=True)
class Part:
    """Figures of a part of the stream."""

    backend: str
    records: int
    """So far."""
    pairs: int
    buffered: int
    timers: int
    rss_mb: int
    write_buffers_mb: float
    microseconds: float
    """For each record of this part."""


class Count(ProcessJoinFunction):
    """Counts pairs, and emits nothing."""

    def __init__(self) -> None:
        self.pairs = 0

    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        self.pairs += 1


def _harness(function: Count, backend: str, memory_mb: int | None) -> TwoInputHarness:
    settings = {} if memory_mb is None else {"state.backend.rocksdb.memory.fixed-per-slot": f"{memory_mb} mb"}
    env = test_environment()
    left, right = (env.from_collection([]).key_by(lambda record: record[0]) for _ in range(2))
    joined = left.interval_join(right).between(-BOUND_MS, BOUND_MS)
    harness: TwoInputHarness = harness_for(
        joined.process(function), backend=backend, configuration=Configuration.from_dict(settings)
    )
    return harness


def _buffered(harness: TwoInputHarness) -> int:
    """Records in the state of both sides."""
    backend: Any = harness._chained.backend
    return sum(
        len(bucket) for name in BUFFERS for _, _, buckets in backend.entries(name) for bucket in buckets.values()
    )


def _write_buffers_mb(harness: TwoInputHarness) -> float:
    """Memory of RocksDB's write buffers."""
    backend: Any = harness._chained.backend
    tables = backend._database.tables.values() if backend.name == "rocksdb" else ()
    sizes = [table.family.property_int_value("rocksdb.size-all-mem-tables") or 0 for table in tables]
    return sum(sizes) / (1 << 20)


def run(backend: str, parts: int, records: int, keys: int, memory_mb: int | None) -> Iterator[Part]:
    """Feeds the join, and gives the figures of each part."""
    function = Count()
    draw = random.Random(7)
    event_time = total = 0
    with _harness(function, backend, memory_mb) as harness:
        loops = [harness._compile(side, True) for side in range(2)]
        for _ in range(parts):
            took = 0.0
            for _ in range(records // (2 * BATCH)):
                for loop in loops:
                    values = [(draw.randrange(keys), number) for number in range(BATCH)]
                    times = [event_time + draw.randrange(BATCH) for _ in range(BATCH)]
                    begin = time.process_time()
                    loop(values, times)
                    took += time.process_time() - begin
                event_time += BATCH
                begin = time.process_time()
                harness.process_watermark(event_time - DELAY_MS)
                took += time.process_time() - begin
            total += records
            yield Part(
                backend,
                total,
                function.pairs,
                _buffered(harness),
                harness.num_event_time_timers(),
                psutil.Process().memory_info().rss >> 20,
                _write_buffers_mb(harness),
                took / records * 1e6,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=int, default=10)
    parser.add_argument("--records", type=int, default=100_000, help="of both sides, in each part")
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--backends", default="hashmap,rocksdb")
    parser.add_argument("--memory", type=int, help="of RocksDB in MB; default: 128")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures = []
    titles = ("records", "pairs", "buffered", "timers", "RSS MB", "write buffers MB", "µs/record")
    print(f"{'backend':8} " + " ".join(f"{title:>16}" for title in titles))
    for backend in options.backends.split(","):
        for part in run(backend, options.parts, options.records, options.keys, options.memory):
            figures.append(asdict(part))
            counts = (part.records, part.pairs, part.buffered, part.timers, part.rss_mb)
            cells = [*(f"{count:,}" for count in counts), f"{part.write_buffers_mb:.1f}", f"{part.microseconds:.1f}"]
            print(f"{part.backend:8} " + " ".join(f"{cell:>16}" for cell in cells), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
