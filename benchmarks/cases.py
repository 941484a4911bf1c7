"""What is measured: the cases, their variants, and the systems that take part in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CASES", "CORES", "SYSTEMS", "Case", "System", "Variant"]

CORES = 2
KEYS = 10_000
RATE = 5_000
"""Records a second in the latency case."""
RECORDS_PER_EVENT_SECOND = 100_000
END = 1 << 50
"""End of the number sequence, which no run reaches."""


@dataclass(frozen=True)
class System:
    """One system under test: the module that drives it and how long it needs to reach its pace."""

    name: str
    module: str
    venv: str | None
    warmup_s: float
    about: str
    min_seconds: float = 0.0
    """What one measurement takes at least, because progress comes in long steps."""


@dataclass(frozen=True)
class Variant:
    """One setting of a case; a case without settings has one variant with an empty name."""

    name: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    warmup_records: int = 0


@dataclass(frozen=True)
class Case:
    """One thing to measure, with the systems that can do it."""

    name: str
    about: str
    systems: tuple[str, ...]
    figure: str = "records_per_s"
    variants: tuple[Variant, ...] = (Variant(),)


SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        System("firesteel", "firesteel", None, 5.0, "this project, 2 slots on embedded Spark"),
        System("pyflink-process", "pyflink", "pyflink", 15.0, "PyFlink, Python workers beside the JVM", 30.0),
        System("pyflink-thread", "pyflink", "pyflink", 15.0, "PyFlink, Python inside the JVM"),
        System("pyspark-kafka", "pyspark", "pyspark-kafka", 15.0, "Structured Streaming with its Kafka connector"),
        System("flink-cep", "firesteel", None, 5.0, "Flink's CEP library in Java, parallelism 2"),
        System("bytewax", "bytewax", "bytewax", 3.0, "Bytewax, 1 worker"),
        System("bytewax-2p", "bytewax", "bytewax", 3.0, "Bytewax, 2 processes"),
        System("pyspark-tws", "pyspark", "pyspark", 20.0, "PySpark transformWithStateInPandas, RocksDB", 60.0),
    )
}

_PYFLINK = ("pyflink-process", "pyflink-thread")
_BYTEWAX = ("bytewax", "bytewax-2p")


def _keys(name: str, keys: int) -> Variant:
    return Variant(name, {"keys": keys}, warmup_records=3 * keys)


CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case(
            "stateless",
            "map, filter and map with Python lambdas over a number sequence",
            ("firesteel", *_PYFLINK, *_BYTEWAX),
        ),
        Case(
            "keyed_sum",
            f"map, key_by ({KEYS:,} keys), running sum in a ValueState",
            ("firesteel", *_PYFLINK, *_BYTEWAX, "pyspark-tws"),
        ),
        Case(
            "window",
            f"sum in 1 s tumbling event-time windows, {KEYS:,} keys, "
            f"{RECORDS_PER_EVENT_SECOND:,} records per second of event time",
            ("firesteel", *_PYFLINK, *_BYTEWAX),
        ),
        Case(
            "latency",
            f"keyed_sum at {RATE:,} records/s: from a record's creation to after the keyed function",
            ("firesteel", *_PYFLINK, "bytewax"),
            figure="p99_ms",
            variants=(
                Variant("default", {"settings": "default"}),
                Variant("flush-1ms", {"settings": "flush-1ms"}),
            ),
        ),
        Case(
            "keys",
            "keyed_sum with more and more keys; bytes per key from the growth of resident memory",
            ("firesteel",),
            variants=(
                _keys("10k", 10_000),
                _keys("100k", 100_000),
                _keys("1M", 1_000_000),
                _keys("5M", 5_000_000),
            ),
        ),
        Case(
            "wide",
            f"keyed_sum with 1, 2, 4 and 8 subtasks on {CORES} cores",
            ("firesteel",),
            variants=tuple(Variant(str(n), {"parallelism": n}) for n in (1, 2, 4, 8)),
        ),
    )
}
