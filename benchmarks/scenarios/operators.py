"""Scenarios of single operators, and of the start of a program."""

from __future__ import annotations

from typing import Any

from benchmarks.scenarios.scenario import Column, Scenario, ScenarioVariant

__all__ = ["async_io", "cep", "columns", "skew", "sql_latency", "startup"]


def skew() -> Scenario:
    base: dict[str, Any] = {"hot": True, "warmup_s": 5.0, "patience_s": 120.0, "backend": "hashmap", "windows": False}
    small = {"warmup_s": 0.6, "seconds": 0.6}

    def variant(method: str, plain: str | None = None, title: str = "", **params: Any) -> ScenarioVariant:
        name = f"{method}{title}"
        ratio = None if plain is None else (name, f"{plain}{title}")
        return ScenarioVariant(name, {**base, "method": method, **params}, small, ratio=ratio)

    return Scenario(
        "skew",
        "running sums and windowed counts of 10,000 keys, one of which has half of all records",
        (
            Column("records_per_s", "records/s"),
            Column("busiest_ms_per_s", "busiest slot ms/s"),
            Column("least_busy_ms_per_s", "other ms/s"),
            Column("busy_ratio", "busiest/other", ",.2f"),
            Column("cpu_ratio", "CPU busiest/other", ",.2f"),
        ),
        (
            variant("reduce", title=", even keys", hot=False),
            variant("reduce"),
            *(variant(method, "reduce") for method in ("pre_aggregate", "salted_aggregate", "mini_batch_aggregate")),
            variant("reduce", title=", RocksDB", backend="rocksdb"),
            *(
                variant(method, "reduce", ", RocksDB", backend="rocksdb")
                for method in ("pre_aggregate", "salted_aggregate", "mini_batch_aggregate")
            ),
            variant("aggregate", title=", windows", windows=True),
            variant("pre_aggregate", "aggregate", ", windows", windows=True),
        ),
        figure="records_per_s",
        ratio_title="of plain",
        most_repeats=3,
    )


def columns() -> Scenario:
    params: dict[str, Any] = {"rows": 16_384, "warmup_s": 5.0, "patience_s": 120.0}
    small = {"rows": 512, "warmup_s": 0.6, "seconds": 0.6}
    variants = [
        ScenarioVariant(f"{form}, {exchanged}", {**params, "form": form, "exchanged": exchanged}, small, ratio=ratio)
        for exchanged in ("2 columns", "7 columns")
        for form, ratio in (
            ("tuples", None),
            ("columns", (f"columns, {exchanged}", f"tuples, {exchanged}")),
        )
    ]
    return Scenario(
        "columns",
        "NEXMark's bids, a filter, an exchange by auction, count and sum per auction; batches of 16,384 rows",
        (Column("records_per_s", "records/s"), Column("cpu_ns", "CPU ns")),
        (
            *variants,
            ScenarioVariant(
                "columns, 2 columns read",
                {**params, "form": "columns", "exchanged": "2 columns", "projected": True},
                small,
            ),
            ScenarioVariant(
                "columns, 7 columns, 4,096 rows",
                {**params, "form": "columns", "exchanged": "7 columns", "rows": 4_096},
                small,
            ),
        ),
        figure="records_per_s",
        ratio_title="of tuples",
        most_repeats=3,
    )


def sql_latency() -> Scenario:
    params: dict[str, Any] = {"rate": 1_000, "warmup_s": 5.0, "patience_s": 120.0, "mini_batch": True}
    small = {"rate": 200, "warmup_s": 0.6, "seconds": 0.6}
    return Scenario(
        "sql_latency",
        "COUNT and MAX per key of 1,000 rows a second in SQL, through an exchange: from a row to the change it causes",
        (
            Column("records", "results"),
            Column("p50_ms", "p50 ms", ",.1f"),
            Column("p99_ms", "p99 ms", ",.1f", worst=True),
            Column("max_ms", "max ms", ",.1f", worst=True),
        ),
        (
            ScenarioVariant("mini-batches", params, small),
            ScenarioVariant("row by row", {**params, "mini_batch": False}, small),
        ),
        figure="p99_ms",
        most_repeats=3,
    )


def startup() -> Scenario:
    spark = "SparkSession and one Python task"
    return Scenario(
        "startup",
        "from the start of a process to the first result of its program, on embedded Spark",
        (
            Column("first_result_s", "first result s", ",.2f"),
            Column("cpu_s", "CPU s until then", ",.1f"),
            Column("end_s", "end s", ",.2f"),
        ),
        (
            ScenarioVariant(spark, {"program": "spark"}),
            ScenarioVariant("map and print", {"program": "small"}, ratio=("map and print", spark)),
            ScenarioVariant("README's program", {"program": "readme"}, ratio=("README's program", spark)),
        ),
        figure="first_result_s",
        ratio_title="of PySpark",
        most_repeats=5,
    )


def cep() -> Scenario:
    params = {"records": 4_000_000, "few": 200_000, "keys": 10_000, "matches": True, "within_ms": 600_000}
    small = {"records": 4_000, "few": 1_000, "keys": 100}
    pruned = {**params, "matches": False, "within_ms": 1_000}
    return Scenario(
        "cep",
        "the pattern of the fraud example in event time: 10,000 cards, 1% high payments, 2% abroad; and one that never "
        "matches, within a second",
        (
            Column("records", "records"),
            Column("seconds", "seconds", ",.1f"),
            Column("records_per_s", "records/s"),
            Column("worker_rss_mb", "RSS MB of a worker", worst=True),
            Column("rss_mb", "of all", worst=True),
        ),
        (
            ScenarioVariant("firesteel", params, small),
            ScenarioVariant(
                "flink-cep", params, small, ratio=("firesteel", "flink-cep"), system="flink-cep", module="cep_flink"
            ),
            ScenarioVariant("no match, 1M", {**pruned, "records": 1_000_000}, small),
            ScenarioVariant("no match, 4M", {**pruned, "records": 4_000_000}, small),
        ),
        figure="records_per_s",
        ratio_title="over it",
        most_repeats=2,
    )


def async_io() -> Scenario:
    calls = {"at once": (None, 200_000), "sleep(0)": (0.0, 100_000), "50 ms": (0.05, 10_000)}
    variants = []
    for name, (latency, records) in calls.items():
        params = {"latency_s": latency, "records": records, "few": records // 10, "alone": records // 4}
        small = {"records": 400, "few": 100, "alone": 100}
        flink = {"latency_s": latency, "records": 4_000, "few": 400}
        peer = ScenarioVariant(f"{name} pyflink", flink, small, None, "pyflink-process", "async_io_pyflink")
        variants += [ScenarioVariant(name, params, small, ratio=(name, peer.name)), peer]
    return Scenario(
        "async_io",
        "async functions that return at once, after sleep(0) and after 50 ms; one subtask, up to 100 calls at a time",
        (
            Column("records", "records"),
            Column("records_per_s", "records/s"),
            Column("cpu_us", "CPU us", ",.1f"),
            Column("asyncio_per_s", "asyncio alone"),
        ),
        tuple(variants),
        figure="records_per_s",
        ratio_title="of PyFlink",
        most_repeats=3,
    )
