"""The configuration options of tables, SQL and the SQL shell."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.option import ConfigOptions

__all__ = [
    "AGG_PHASE_STRATEGY",
    "ALLOW_LATENESS",
    "ASYNC_LOOKUP_BUFFER_CAPACITY",
    "ASYNC_LOOKUP_TIMEOUT",
    "ASYNC_ML_PREDICT_MAX_CONCURRENT_OPERATIONS",
    "ASYNC_ML_PREDICT_OUTPUT_MODE",
    "ASYNC_ML_PREDICT_TIMEOUT",
    "CATALOG_STORE_FILE_PATH",
    "CATALOG_STORE_KIND",
    "COLOR_SCHEMA",
    "DISTINCT_AGG_SPLIT_BUCKET_NUM",
    "DISTINCT_AGG_SPLIT_ENABLED",
    "DML_SYNC",
    "EARLY_FIRE_DELAY",
    "EARLY_FIRE_ENABLED",
    "IDLE_STATE_RETENTION",
    "LATE_FIRE_DELAY",
    "LATE_FIRE_ENABLED",
    "LOCAL_TIME_ZONE",
    "MATERIALIZED_TABLE_FRESHNESS_CONTINUOUS",
    "MATERIALIZED_TABLE_FRESHNESS_FULL",
    "MATERIALIZED_TABLE_FRESHNESS_THRESHOLD",
    "MAX_COLUMN_WIDTH",
    "MAX_TABLE_RESULT_ROWS",
    "MINI_BATCH_ENABLED",
    "NOT_NULL_ENFORCER",
    "PLAN_COMPILE_CATALOG_OBJECTS",
    "PLAN_FORCE_RECOMPILE",
    "PLAN_RESTORE_CATALOG_OBJECTS",
    "PRINT_TIME_COST",
    "REQUIRE_ON_CONFLICT",
    "RESULT_MODE",
    "SHOW_LINE_NUMBERS",
    "SOURCE_IDLE_TIMEOUT",
    "UPSERT_MATERIALIZE",
    "VERBOSE",
]

_key = ConfigOptions.key

AGG_PHASE_STRATEGY = (
    _key("table.optimizer.agg-phase-strategy")
    .choice_type("AUTO", "TWO_PHASE", "ONE_PHASE")
    .default_value("AUTO")
    .with_description(
        "Whether aggregates have a local phase before the exchange by key. AUTO: if the functions can be merged, "
        "mini-batches are enabled, and there is more than one subtask."
    )
)
DML_SYNC = (
    _key("table.dml-sync")
    .boolean_type()
    .default_value(False)
    .with_description("Whether the SQL shell and the SQL Gateway wait for the end of an INSERT. Scripts always do.")
)
DISTINCT_AGG_SPLIT_ENABLED = (
    _key("table.optimizer.distinct-agg.split.enabled")
    .boolean_type()
    .default_value(False)
    .with_description(
        "Whether aggregates with DISTINCT are computed in two steps in streaming queries: the values of a group in "
        "buckets, then the results of the buckets. It spreads a group with many distinct values over the subtasks."
    )
)
DISTINCT_AGG_SPLIT_BUCKET_NUM = (
    _key("table.optimizer.distinct-agg.split.bucket-num")
    .int_type()
    .default_value(1024)
    .with_description(
        "Buckets of a group when distinct aggregates are split. The bucket of a value is its hash modulo this number; "
        "state of another number of buckets is not restored."
    )
)
ASYNC_LOOKUP_BUFFER_CAPACITY = (
    _key("table.exec.async-lookup.buffer-capacity")
    .int_type()
    .default_value(100)
    .with_description("Asynchronous lookups of a subtask at the same time; there are at most 8, one in each thread.")
)
ASYNC_LOOKUP_TIMEOUT = (
    _key("table.exec.async-lookup.timeout")
    .duration_type()
    .default_value(Duration.of_minutes(3))
    .with_description("Time after which an asynchronous lookup fails.")
)
ASYNC_ML_PREDICT_MAX_CONCURRENT_OPERATIONS = (
    _key("table.exec.async-ml-predict.max-concurrent-operations")
    .int_type()
    .default_value(10)
    .with_description("Calls of a model by a subtask at the same time, in ML_PREDICT.")
)
ASYNC_ML_PREDICT_OUTPUT_MODE = (
    _key("table.exec.async-ml-predict.output-mode")
    .choice_type("ORDERED", "ALLOW_UNORDERED")
    .default_value("ORDERED")
    .with_description(
        "Whether ML_PREDICT keeps the order of rows. ALLOW_UNORDERED has an effect where rows are only added."
    )
)
ASYNC_ML_PREDICT_TIMEOUT = (
    _key("table.exec.async-ml-predict.timeout")
    .duration_type()
    .default_value(Duration.of_minutes(3))
    .with_description("Time after which a call of a model fails, retries included.")
)
CATALOG_STORE_KIND = (
    _key("table.catalog-store.kind")
    .string_type()
    .default_value("generic_in_memory")
    .with_description(
        "Where the options of catalogs are kept: generic_in_memory for the time of a session, or file, in a directory."
    )
)
CATALOG_STORE_FILE_PATH = (
    _key("table.catalog-store.file.path")
    .string_type()
    .no_default_value()
    .with_description("Directory of the catalog store file, with a YAML file for each catalog.")
)
MATERIALIZED_TABLE_FRESHNESS_CONTINUOUS = (
    _key("materialized-table.default-freshness.continuous")
    .duration_type()
    .default_value(Duration.of_minutes(3))
    .with_description("FRESHNESS of materialized tables that have none, unless their REFRESH_MODE is FULL.")
)
MATERIALIZED_TABLE_FRESHNESS_FULL = (
    _key("materialized-table.default-freshness.full")
    .duration_type()
    .default_value(Duration.of_hours(1))
    .with_description("FRESHNESS of materialized tables that have none and whose REFRESH_MODE is FULL.")
)
MATERIALIZED_TABLE_FRESHNESS_THRESHOLD = (
    _key("materialized-table.refresh-mode.freshness-threshold")
    .duration_type()
    .default_value(Duration.of_minutes(30))
    .with_description("Materialized tables without REFRESH_MODE are refreshed continuously if FRESHNESS is shorter.")
)
EARLY_FIRE_ENABLED = (
    _key("table.exec.emit.early-fire.enabled")
    .boolean_type()
    .default_value(False)
    .with_description(
        "Whether TUMBLE and HOP in GROUP BY have results before the windows end, once in "
        "table.exec.emit.early-fire.delay, with changes of these results."
    )
)
LATE_FIRE_ENABLED = (
    _key("table.exec.emit.late-fire.enabled")
    .boolean_type()
    .default_value(False)
    .with_description(
        "Whether TUMBLE and HOP in GROUP BY take late rows, up to table.exec.emit.allow-lateness, and have their "
        "results again once in table.exec.emit.late-fire.delay."
    )
)
EARLY_FIRE_DELAY = (
    _key("table.exec.emit.early-fire.delay")
    .duration_type()
    .no_default_value()
    .with_description("How often a window has results before it ends; 0 is with each row.")
)
LATE_FIRE_DELAY = (
    _key("table.exec.emit.late-fire.delay")
    .duration_type()
    .no_default_value()
    .with_description("How often a window has results for late rows; 0 is with each row.")
)
ALLOW_LATENESS = (
    _key("table.exec.emit.allow-lateness")
    .duration_type()
    .no_default_value()
    .with_description(
        "How long after its end a window takes late rows if table.exec.emit.late-fire.enabled. The default is "
        "table.exec.state.ttl."
    )
)
IDLE_STATE_RETENTION = (
    _key("table.exec.state.ttl")
    .duration_type()
    .default_value(Duration.of_millis(0))
    .with_description("Time after its last change when the state of a key is forgotten; 0 is never.")
)
LOCAL_TIME_ZONE = (
    _key("table.local-time-zone")
    .string_type()
    .default_value("default")
    .with_description(
        "Time zone of the session, such as Europe/Berlin or GMT-08:00: in which TIMESTAMP_LTZ values are shown, and "
        "cast from and to other types. The default is that of the machine."
    )
)
MAX_COLUMN_WIDTH = (
    _key("table.display.max-column-width")
    .int_type()
    .default_value(30)
    .with_fallback_keys("sql-client.display.max-column-width")
    .with_description(
        "Width of columns without a fixed width, such as strings, in results of queries that are printed. Longer "
        "values are cut."
    )
)
MINI_BATCH_ENABLED = (
    _key("table.exec.mini-batch.enabled")
    .boolean_type()
    .default_value(True)
    .with_description(
        "Whether an aggregate emits at most one change per key for the rows that it processes together. If false, "
        "every row has the changes that it causes, as in Flink, whose default is false."
    )
)
NOT_NULL_ENFORCER = (
    _key("table.exec.sink.not-null-enforcer")
    .choice_type("ERROR", "DROP")
    .default_value("ERROR")
    .with_description(
        "What happens to rows with a null value for a NOT NULL column of the table to which they are written: ERROR "
        "fails the job, DROP leaves them out."
    )
)
REQUIRE_ON_CONFLICT = (
    _key("table.exec.sink.require-on-conflict")
    .boolean_type()
    .default_value(True)
    .with_description(
        "Whether an INSERT into a table with a primary key needs an ON CONFLICT clause if no key of the query's rows "
        "is part of the primary key, so that several rows may have the same. If false, the last of them is kept."
    )
)
PLAN_COMPILE_CATALOG_OBJECTS = (
    _key("table.plan.compile.catalog-objects")
    .choice_type("ALL", "SCHEMA", "IDENTIFIER")
    .default_value("ALL")
    .with_description(
        "What a compiled plan keeps of the tables of catalogs. ALL: columns and options. SCHEMA: columns. IDENTIFIER: "
        "names. Of temporary tables it always keeps the names."
    )
)
PLAN_RESTORE_CATALOG_OBJECTS = (
    _key("table.plan.restore.catalog-objects")
    .choice_type("ALL", "ALL_ENFORCED", "IDENTIFIER")
    .default_value("ALL")
    .with_description(
        "Where the tables of a compiled plan come from. ALL: the plan, and a catalog for what the plan does not have. "
        "ALL_ENFORCED: the plan alone. IDENTIFIER: the catalog alone."
    )
)
PLAN_FORCE_RECOMPILE = (
    _key("table.plan.force-recompile")
    .boolean_type()
    .default_value(False)
    .with_description("Whether COMPILE PLAN replaces a plan that exists. For development: state may get lost.")
)
SOURCE_IDLE_TIMEOUT = (
    _key("table.exec.source.idle-timeout")
    .duration_type()
    .default_value(Duration.of_millis(0))
    .with_description(
        "Time without rows after which a partition of a table, or a subtask that assigns watermarks, is idle, so that "
        "the watermarks of others count alone. 0: never. The option scan.watermark.idle-timeout of a table goes first."
    )
)
UPSERT_MATERIALIZE = (
    _key("table.exec.sink.upsert-materialize")
    .choice_type("AUTO", "FORCE", "NONE")
    .default_value("AUTO")
    .with_description(
        "Whether rows with the same primary key of a sink are kept apart before it, in state. AUTO: if no key of the "
        "query's rows is part of the primary key, unless they are insertions with ON CONFLICT DO DEDUPLICATE."
    )
)
RESULT_MODE = (
    _key("sql-client.execution.result-mode")
    .choice_type("TABLE", "CHANGELOG", "TABLEAU")
    .default_value("TABLE")
    .with_description(
        "How the shell shows results of queries. TABLE: on the whole screen, with the rows as they are now; "
        "CHANGELOG: on the whole screen, with the changes; TABLEAU: printed below the statement. Scripts are always "
        "printed."
    )
)
MAX_TABLE_RESULT_ROWS = (
    _key("sql-client.execution.max-table-result.rows")
    .int_type()
    .default_value(1_000_000)
    .with_description("Rows that the result mode TABLE keeps; beyond them it forgets the oldest.")
)
VERBOSE = (
    _key("sql-client.verbose")
    .boolean_type()
    .default_value(False)
    .with_description("Whether the shell prints the stack trace of an error, and EXPLAIN all its parts.")
)
PRINT_TIME_COST = (
    _key("sql-client.display.print-time-cost")
    .boolean_type()
    .default_value(True)
    .with_description("Whether the shell prints how long a query took.")
)
COLOR_SCHEMA = (
    _key("sql-client.display.color-schema")
    .choice_type("DEFAULT", "DARK", "LIGHT", "CHESTER", "VS2010", "SOLARIZED", "OBSIDIAN", "GESHI", "NONE")
    .default_value("DEFAULT")
    .with_description(
        "Colors of statements in the shell. DEFAULT: those of the terminal; NONE: no colors. In Flink DEFAULT has no "
        "colors, and there is no NONE."
    )
)
SHOW_LINE_NUMBERS = (
    _key("sql-client.display.show-line-numbers")
    .boolean_type()
    .default_value(False)
    .with_description("Whether the shell numbers the lines of a statement that has several.")
)
