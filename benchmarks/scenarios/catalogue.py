"""What the scenarios are: their variants with parameters, and the figures they give."""

from __future__ import annotations

from typing import Any

from benchmarks.scenarios import operators
from benchmarks.scenarios.scenario import Column, Scenario, ScenarioVariant

__all__ = ["SCENARIOS"]

BACKENDS = ("hashmap", "rocksdb")
_KEYS = 1_000_000


def _checkpointing() -> Scenario:
    variants = []
    for backend in BACKENDS:
        params = {"backend": backend, "keys": _KEYS, "hot": _KEYS // 100, "warmup_s": 3.0}
        small = {"keys": 2_000, "hot": 20, "warmup_s": 0.1, "seconds": 0.5}
        variants += [
            ScenarioVariant(f"{backend} none", params, small),
            ScenarioVariant(
                f"{backend} 1s",
                {**params, "interval": "1 s"},
                {**small, "interval": "100 ms"},
                ratio=(f"{backend} 1s", f"{backend} none"),
            ),
        ]
    return Scenario(
        "checkpointing",
        "keyed_sum with a million keys in state and traffic on 1% of them, without checkpoints and with one a second",
        (
            Column("records_per_s", "records/s"),
            Column("cpu_ns", "CPU ns"),
            Column("checkpoints", "checkpoints"),
            Column("failed", "failed", worst=True),
            Column("duration_ms", "duration ms"),
            Column("pause_p50_ms", "pause p50 ms"),
            Column("pause_p99_ms", "p99 ms"),
            Column("pause_max_ms", "max ms", worst=True),
            Column("written_kb", "written kB"),
            Column("written_over_changed", "over changed", ",.2f"),
            Column("state_mb", "state MB", ",.1f"),
        ),
        tuple(variants),
        figure="records_per_s",
        ratio_title="of none",
        most_repeats=3,
    )


def _state_size() -> Scenario:
    sizes = {"10k": 10_000, "100k": 100_000, "1M": 1_000_000, "5M": 5_000_000}
    return Scenario(
        "state_size",
        "full checkpoint, incremental one after 1% of the keys changed, canonical savepoint, and restores",
        (
            Column("full_ms", "full ms"),
            Column("full_pause_ms", "pause ms"),
            Column("full_mb", "MB", ",.1f"),
            Column("incremental_ms", "incr. ms"),
            Column("incremental_pause_ms", "pause ms"),
            Column("incremental_mb", "MB", ",.2f"),
            Column("restore_s", "restore s", ",.1f"),
            Column("savepoint_ms", "savepoint ms"),
            Column("savepoint_restore_s", "restore s", ",.1f"),
        ),
        tuple(
            ScenarioVariant(f"{backend} {name}", {"backend": backend, "keys": keys}, {"keys": keys // 1000 * 2})
            for backend in BACKENDS
            for name, keys in sizes.items()
        ),
    )


def _rocksdb_large() -> Scenario:
    params = {"keys": 5_000_000, "size": 200, "warmup_s": 3.0, "patience_s": 600.0}
    small = {"keys": 2_000, "warmup_s": 0.1, "seconds": 0.3, "limit_mb": None}
    memory = {"state.backend.rocksdb.memory.fixed-per-slot": "256mb"}
    return Scenario(
        "rocksdb_large",
        "5 million keys of 200 bytes, each record reads and replaces one; RocksDB in slots limited to 512 MB",
        (
            Column("keys", "keys"),
            Column("insert_records_per_s", "inserts/s"),
            Column("records_per_s", "records/s"),
            Column("worker_rss_mb", "RSS MB of a worker", worst=True),
            Column("rss_mb", "of all", worst=True),
        ),
        (
            ScenarioVariant(
                "rocksdb 512MB", {**params, "backend": "rocksdb", "limit_mb": 512, "options": memory}, small
            ),
            ScenarioVariant("hashmap", {**params, "backend": "hashmap"}, small, ratio=("rocksdb 512MB", "hashmap")),
            ScenarioVariant(
                "pyflink rocksdb",
                {
                    **params,
                    "keys": 500_000,
                    "options": {
                        "state.backend.type": "rocksdb",
                        "state.backend.rocksdb.memory.fixed-per-slot": "256mb",
                    },
                },
                {"keys": 5_000, "warmup_s": 1.0, "seconds": 2.0},
                ratio=("rocksdb 512MB", "pyflink rocksdb"),
                system="pyflink-thread",
                module="rocksdb_large_pyflink",
            ),
        ),
        figure="records_per_s",
        ratio_title="rocksdb's over it",
    )


def _recovery() -> Scenario:
    params: dict[str, Any] = {
        "keys": 100_000,
        "interval": "1 s",
        "kills": 5,
        "load_s": 4.0,
        "patience_s": 60.0,
        "fault": "kill",
        # the default strategy, which forgets a failure early enough for each kill to be like the first
        "options": {
            "restart-strategy.type": "exponential-delay",
            "restart-strategy.exponential-delay.reset-backoff-threshold": "3 s",
        },
    }
    small = {"keys": 1_000, "interval": "100 ms", "kills": 1, "load_s": 0.2}
    at_once = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000",
        "restart-strategy.fixed-delay.delay": "0 s",
    }
    return Scenario(
        "recovery",
        "SIGKILL of a Python worker under load, a checkpoint every second: until the first new output",
        (
            Column("kills", "kills"),
            Column("output_median_s", "output s", ",.2f"),
            Column("output_max_s", "max s", ",.2f", worst=True),
            Column("running_median_s", "running s", ",.2f"),
            Column("state_mb", "state MB", ",.1f"),
        ),
        (
            ScenarioVariant("hashmap", {**params, "backend": "hashmap"}, small),
            ScenarioVariant("rocksdb", {**params, "backend": "rocksdb"}, small),
            ScenarioVariant("hashmap no delay", {**params, "backend": "hashmap", "options": at_once}, small),
        ),
    )


def _unaligned() -> Scenario:
    params: dict[str, Any] = {
        "hops": 1,
        "delay_ms": 0.3,
        "window_s": 3.0,
        "patience_s": 400.0,
        "checkpoints": 3,
    }
    small = {"hops": 0, "delay_ms": 0.001, "window_s": 0.1, "checkpoints": 1, "patience_s": 30.0}
    unaligned = {"execution.checkpointing.unaligned.enabled": "true"}
    timeout = {**unaligned, "execution.checkpointing.aligned-checkpoint-timeout": "1 s"}
    return Scenario(
        "unaligned",
        "checkpoints while a sink that takes 0.3 ms a record holds back the whole job",
        (
            Column("checkpoints", "checkpoints"),
            Column("duration_median_s", "duration s", ",.2f"),
            Column("duration_max_s", "max s", ",.2f", worst=True),
            Column("alignment_max_s", "alignment s", ",.2f", worst=True),
            Column("unaligned", "unaligned"),
            Column("in_flight_records", "records in flight"),
            Column("in_flight_kb", "persisted kB", ",.1f"),
        ),
        (
            ScenarioVariant("aligned", {**params, "checkpoints": 1, "options": {}}, small),
            ScenarioVariant("unaligned", {**params, "options": unaligned}, small, ratio=("aligned", "unaligned")),
            ScenarioVariant("timeout 1s", {**params, "options": timeout}, small, ratio=("aligned", "timeout 1s")),
        ),
        figure="duration_median_s",
        ratio_title="aligned's over it",
    )


def _fairness() -> Scenario:
    params: dict[str, Any] = {
        "slots": 2,
        "slow_ms": 0.2,
        "own_slots": False,
        "warmup_s": 25.0,
        "seconds": 30.0,
        "patience_s": 300.0,
    }
    small = {"slow_ms": 0.0, "warmup_s": 0.2, "seconds": 0.6, "patience_s": 60.0}
    return Scenario(
        "fairness",
        "a source and three keyed operators, one of which takes 0.2 ms a record: subtasks of the source, event time",
        (
            Column("slowest", "slowest records/s"),
            Column("fastest", "fastest"),
            Column("slowest_over_fastest", "slowest/fastest", ",.2f"),
            Column("watermark_lag_s", "watermark lag s", ",.1f"),
            Column("watermark_lag_max_s", "max s", ",.1f", worst=True),
            Column("checkpoint_s", "checkpoint s", ",.1f"),
        ),
        (
            *(
                ScenarioVariant(f"{slots} slots, {place} slow", {**params, "slots": slots, "place": place}, small)
                for slots, place in ((2, "first"), (2, "second"), (2, "third"), (4, "third"))
            ),
            ScenarioVariant("2 slots for each, third slow", {**params, "place": "third", "own_slots": True}, small),
        ),
    )


def _batch() -> Scenario:
    params = {"records": 100_000_000, "warm": 100_000}
    small = {"records": 20_000, "warm": 1_000}
    over = "firesteel batch"
    return Scenario(
        "batch",
        "keyed_sum over 100 million rows of Parquet, one result for each row",
        (
            Column("records", "records"),
            Column("seconds", "seconds", ",.1f"),
            Column("records_per_s", "records/s"),
            Column("worker_rss_mb", "RSS MB of a worker", worst=True),
            Column("rss_mb", "of all", worst=True),
        ),
        (
            ScenarioVariant(over, {**params, "mode": "BATCH"}, small),
            ScenarioVariant(
                "firesteel pipelined", {**params, "mode": "STREAMING"}, small, ratio=(over, "firesteel pipelined")
            ),
            *(
                ScenarioVariant(
                    name,
                    {**params, "way": way},
                    small,
                    ratio=(over, name),
                    system="pyspark-tws",
                    module="batch_pyspark",
                )
                for name, way in (
                    ("applyInPandas", "pandas"),
                    ("Spark SQL window", "window"),
                    ("Spark SQL groupBy", "aggregate"),
                )
            ),
            *(
                ScenarioVariant(
                    f"pyflink {mode} BATCH",
                    {"records": 1_000_000, "few": 50_000},
                    {"records": 3_000, "few": 1_000},
                    ratio=(over, f"pyflink {mode} BATCH"),
                    system=f"pyflink-{mode}",
                    module="batch_pyflink",
                )
                for mode in ("thread", "process")
            ),
        ),
        figure="records_per_s",
        ratio_title="batch over it",
        most_repeats=2,
    )


_TINY = {"epochs": 2, "skip": 1}
_TWS: dict[str, Any] = {"rows": 0, "stages": 2, "epochs": 20, "skip": 6, "patience_s": 240.0}


def _epoch_cost() -> Scenario:
    params = {"scene": "empty", "keys": 10_000, "stages": 2, "epochs": 40, "skip": 20}
    return Scenario(
        "epoch_cost",
        "an epoch over two shuffles without data, and such a micro-batch of Structured Streaming",
        (
            Column("epochs", "epochs"),
            Column("epoch_ms", "epoch ms"),
            Column("epoch_max_ms", "max ms", worst=True),
        ),
        (
            ScenarioVariant("epochs", params, {**_TINY, "keys": 100}, module="epochs"),
            ScenarioVariant("tws", _TWS, _TINY, ratio=("tws", "epochs"), system="pyspark-tws", module="epochs_pyspark"),
        ),
        figure="epoch_ms",
        ratio_title="it over epochs",
        most_repeats=2,
    )


def _epoch_load() -> Scenario:
    params = {"scene": "load", "keys": 10_000, "warmup_s": 15.0}
    tws = {**_TWS, "rows": 500_000, "stages": 1, "skip": 2, "epochs": 6}
    return Scenario(
        "epoch_load",
        "keyed_sum at full speed, in epochs that credits keep at 1 s and in Structured Streaming's micro-batches",
        (
            Column("epochs", "epochs"),
            Column("epoch_ms", "epoch ms"),
            Column("records_per_s", "records/s"),
        ),
        (
            ScenarioVariant("epochs", params, {"keys": 100, "warmup_s": 1.0, "seconds": 1.0}, module="epochs"),
            ScenarioVariant(
                "tws",
                tws,
                {**_TINY, "rows": 1_000},
                ratio=("epochs", "tws"),
                system="pyspark-tws",
                module="epochs_pyspark",
            ),
        ),
        figure="records_per_s",
        ratio_title="epochs over it",
        most_repeats=2,
    )


def _epoch_state() -> Scenario:
    params = {"scene": "touch", "epochs": 8, "hot": 10_000}
    return Scenario(
        "epoch_state",
        "epochs that each touch the same 10,000 keys, of more and more in state",
        (
            Column("epochs", "epochs"),
            Column("epoch_ms", "until processed ms"),
            Column("epoch_max_ms", "max ms", worst=True),
            Column("written_kb", "written kB"),
            Column("state_mb", "state MB", ",.1f"),
        ),
        tuple(
            ScenarioVariant(
                f"{backend} {name}",
                {**params, "backend": backend, "keys": keys},
                {"epochs": 1, "keys": 400, "hot": 40},
                module="epochs",
            )
            for backend in BACKENDS
            for name, keys in (("10k", 10_000), ("100k", 100_000), ("1M", 1_000_000))
        ),
        most_repeats=2,
    )


def _kafka() -> Scenario:
    params: dict[str, Any] = {
        "scene": "load",
        "records": 16_000_000,
        "interval": "1 s",
        "guarantee": "exactly-once",
        "warmup_s": 10.0,
    }
    small = {"records": 300_000, "warmup_s": 0.1, "seconds": 0.3, "interval": "100 ms"}
    spark = {"records": 12_000_000, "per_trigger": 1_000_000, "batches": 8, "skip": 3}
    few = {"records": 20_000, "per_trigger": 1_000, "batches": 2, "skip": 1}
    over = "exactly-once"
    return Scenario(
        "kafka",
        "Kafka to keyed_sum to Kafka, a checkpoint every second, the broker on the same two cores",
        (Column("records", "records"), Column("records_per_s", "records/s")),
        (
            ScenarioVariant(over, params, small),
            ScenarioVariant(
                "at-least-once", {**params, "guarantee": "at-least-once"}, small, ratio=(over, "at-least-once")
            ),
            *(
                ScenarioVariant(
                    f"pyflink {mode}",
                    {**params, "records": 3_000_000, "warmup_s": 20.0},
                    {"records": 1_000_000, "warmup_s": 1.0, "seconds": 2.0},
                    ratio=(over, f"pyflink {mode}"),
                    system=f"pyflink-{mode}",
                    module="kafka_pyflink",
                )
                for mode in ("thread", "process")
            ),
            *(
                ScenarioVariant(
                    name,
                    {**spark, "way": way, **sizes},
                    few,
                    ratio=(over, name),
                    system="pyspark-kafka",
                    module="kafka_pyspark",
                )
                for name, way, sizes in (
                    ("Spark groupBy, at-least-once", "aggregate", {}),
                    ("Spark tws, at-least-once", "python", {"records": 2_400_000, "per_trigger": 200_000}),
                )
            ),
        ),
        figure="records_per_s",
        ratio_title="exactly-once over it",
        most_repeats=2,
    )


def _kafka_latency() -> Scenario:
    params = {"scene": "latency", "rate": 1_000, "warmup_s": 5.0}
    small = {"rate": 100, "warmup_s": 2.0, "seconds": 2.0}
    return Scenario(
        "kafka_latency",
        "from the producer through a keyed stream to a read-committed consumer, 1,000 records a second",
        (
            Column("records", "records"),
            Column("p50_ms", "p50 ms", ",.1f"),
            Column("p99_ms", "p99 ms", ",.1f", worst=True),
            Column("max_ms", "max ms", ",.1f", worst=True),
        ),
        (
            ScenarioVariant(
                "exactly-once 1 s", {**params, "guarantee": "exactly-once", "interval": "1 s"}, small, module="kafka"
            ),
            ScenarioVariant(
                "exactly-once 100 ms",
                {**params, "guarantee": "exactly-once", "interval": "100 ms"},
                small,
                module="kafka",
            ),
            ScenarioVariant(
                "at-least-once 1 s", {**params, "guarantee": "at-least-once", "interval": "1 s"}, small, module="kafka"
            ),
        ),
        most_repeats=2,
    )


def _metrics_cost() -> Scenario:
    small = {"records": 20_000, "warm": 1_000, "rounds": 1}
    return Scenario(
        "metrics_cost",
        "jobs with metrics, reported twice a second, and without any, in turns",
        (
            Column("records", "records"),
            Column("records_per_s", "records/s"),
            Column("records_per_s_off", "without"),
            Column("cpu_ns", "CPU ns", ",.1f"),
            Column("cpu_ns_off", "without", ",.1f"),
            Column("cpu_ratio", "CPU with/without", ",.3f"),
            Column("throughput_ratio", "records with/without", ",.3f"),
        ),
        tuple(
            ScenarioVariant(job, {"job": job, "records": records, "warm": 2_000_000, "rounds": 5}, small)
            for job, records in (("keyed_sum", 16_000_000), ("stateless", 40_000_000))
        ),
    )


def _cluster_load() -> Scenario:
    params = {"measure": "load", "jobs": 50, "rate": 2000, "seconds": 60.0, "turns": 1, "warmup_s": 5.0}
    small = {"jobs": 3, "rate": 50, "seconds": 1.0, "warmup_s": 0.5}
    return Scenario(
        "cluster_load",
        "2,000 requests of /jobs/overview a second, 50 jobs known, while one of them runs at full speed on one core",
        (
            Column("requests_per_s", "requests/s"),
            Column("failed", "failed", worst=True),
            Column("p50_ms", "p50 ms", ",.1f"),
            Column("p99_ms", "p99 ms", ",.1f"),
            Column("max_ms", "max ms", ",.1f", worst=True),
            Column("records_per_s", "records/s alone"),
            Column("loss_percent", "loss %", ",.1f"),
        ),
        (ScenarioVariant("", params, small, module="cluster"),),
        most_repeats=3,
    )


def _cluster_jobs() -> Scenario:
    return Scenario(
        "cluster_jobs",
        "submission to a session cluster: until a job runs, and a hundred at once",
        (
            Column("submissions", "submissions"),
            Column("cold_s", "cold s", ",.2f"),
            Column("median_s", "median s", ",.2f"),
            Column("max_s", "max s", ",.2f", worst=True),
            Column("jobs", "jobs"),
            Column("lost", "lost", worst=True),
            Column("overtaken", "overtaken", worst=True),
            Column("submitted_s", "submitted s", ",.1f"),
            Column("over_s", "all over s", ",.1f"),
        ),
        (
            ScenarioVariant(
                "one by one", {"measure": "submission", "submissions": 10}, {"submissions": 1}, module="cluster"
            ),
            ScenarioVariant("at once", {"measure": "many", "jobs": 100}, {"jobs": 3}, module="cluster"),
        ),
    )


def _cluster_takeover() -> Scenario:
    params = {"measure": "takeover", "jobs": 3, "kills": 3, "load_s": 12.0, "settings": {}}
    small = {"jobs": 1, "kills": 1, "load_s": 6.0}
    return Scenario(
        "cluster_takeover",
        "SIGKILL of the leader with three running jobs: until all run again from their checkpoints at the standby",
        (
            Column("kills", "kills"),
            Column("median_s", "median s", ",.1f"),
            Column("max_s", "max s", ",.1f", worst=True),
        ),
        (ScenarioVariant("filesystem", params, small, module="cluster"),),
    )


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        _checkpointing(),
        _state_size(),
        _rocksdb_large(),
        _recovery(),
        _unaligned(),
        _fairness(),
        operators.skew(),
        operators.columns(),
        operators.sql_latency(),
        operators.startup(),
        _batch(),
        operators.cep(),
        _epoch_cost(),
        _epoch_load(),
        _epoch_state(),
        _kafka(),
        _kafka_latency(),
        _metrics_cost(),
        operators.async_io(),
        _cluster_load(),
        _cluster_jobs(),
        _cluster_takeover(),
    )
}
