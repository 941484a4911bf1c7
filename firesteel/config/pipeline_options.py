"""The configuration options of a program: how it is planned, and what its functions get."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.option import ConfigOptions

__all__ = [
    "ATTACHED",
    "AUTO_GENERATE_UIDS",
    "AUTO_WATERMARK_INTERVAL",
    "CLOSURE_CLEANER_LEVEL",
    "DEFAULT_PARALLELISM",
    "FORCE_AVRO",
    "FORCE_KRYO",
    "GENERIC_TYPES",
    "GLOBAL_JOB_PARAMETERS",
    "INLINE_FUNCTIONS",
    "LATENCY_INTERVAL",
    "MAX_PARALLELISM",
    "OBJECT_REUSE",
    "OPERATOR_CHAINING",
    "PIPELINE_NAME",
    "REQUIRED_DELIVERY_GUARANTEE",
    "RUNTIME_MODE",
    "SPARK_MASTER",
    "STRICT_CONFIG",
]

_key = ConfigOptions.key

DEFAULT_PARALLELISM = (
    _key("parallelism.default")
    .int_type()
    .default_value(1)
    .with_description("How many subtasks an operator has that does not say so itself.")
)
MAX_PARALLELISM = (
    _key("pipeline.max-parallelism")
    .int_type()
    .default_value(-1)
    .with_description("The number of key groups, and so the most subtasks a keyed operator can have; -1 derives it.")
)
PIPELINE_NAME = (
    _key("pipeline.name").string_type().no_default_value().with_description("The name the job is shown under.")
)
STRICT_CONFIG = (
    _key("pipeline.strict-config")
    .boolean_type()
    .default_value(False)
    .with_description(
        "Whether a configuration key that does not exist is an error; if not, it is a warning. Not in Flink."
    )
)
REQUIRED_DELIVERY_GUARANTEE = (
    _key("pipeline.required-delivery-guarantee")
    .choice_type("none", "at-least-once", "exactly-once")
    .default_value("none")
    .with_description(
        "What every sink of the job must promise; a program with one that cannot, with a source that cannot be read "
        "again or without the checkpoints that it takes is refused when it is submitted."
    )
)
OPERATOR_CHAINING = (
    _key("pipeline.operator-chaining.enabled")
    .boolean_type()
    .default_value(True)
    .with_deprecated_keys("pipeline.operator-chaining")
    .with_description("Whether operators that follow each other without an exchange run as one task.")
)
INLINE_FUNCTIONS = (
    _key("firesteel.codegen.inline-functions.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("Whether the bodies of simple lambdas are written into a chain's loop instead of calls.")
)
OBJECT_REUSE = (
    _key("pipeline.object-reuse")
    .boolean_type()
    .default_value(False)
    .with_description(
        "Hands records and state values on without copies. Functions must then not change or keep what they have "
        "been given, emitted or stored."
    )
)
AUTO_WATERMARK_INTERVAL = (
    _key("pipeline.auto-watermark-interval")
    .duration_type()
    .default_value(Duration.of_millis(200))
    .with_description("How often periodic watermarks are emitted; 0 emits none.")
)
AUTO_GENERATE_UIDS = (
    _key("pipeline.auto-generate-uids")
    .boolean_type()
    .default_value(True)
    .with_description("Whether an operator without a uid gets one; if not, a missing uid is an error.")
)
CLOSURE_CLEANER_LEVEL = (
    _key("pipeline.closure-cleaner-level")
    .choice_type("NONE", "TOP_LEVEL", "RECURSIVE")
    .default_value("RECURSIVE")
    .with_description("Kept for Flink programs: Python functions need no closure cleaning.")
)
FORCE_AVRO = (
    _key("pipeline.force-avro")
    .boolean_type()
    .default_value(False)
    .with_description("Kept for Flink programs: there is no Avro serializer for Python objects.")
)
FORCE_KRYO = (
    _key("pipeline.force-kryo")
    .boolean_type()
    .default_value(False)
    .with_description("Kept for Flink programs: there is no Kryo serializer for Python objects.")
)
GENERIC_TYPES = (
    _key("pipeline.generic-types")
    .boolean_type()
    .default_value(True)
    .with_description("Kept for Flink programs: records may be of any type that can be pickled.")
)
GLOBAL_JOB_PARAMETERS = (
    _key("pipeline.global-job-parameters")
    .map_type()
    .no_default_value()
    .with_description("The program's own parameters, which every function can read.")
)
RUNTIME_MODE = (
    _key("execution.runtime-mode")
    .choice_type("STREAMING", "BATCH", "AUTOMATIC")
    .default_value("STREAMING")
    .with_description("Whether the job runs record by record, stage by stage, or as its sources suggest.")
)
ATTACHED = (
    _key("execution.attached")
    .boolean_type()
    .default_value(False)
    .with_description("Whether the client that submits a job waits until it is over.")
)
LATENCY_INTERVAL = (
    _key("metrics.latency.interval")
    .duration_type()
    .default_value(Duration.of_millis(0))
    .with_description("How often sources send marks that measure latency; 0 sends none.")
)
SPARK_MASTER = (
    _key("spark.master")
    .string_type()
    .default_value("local[*]")
    .with_description("The Spark master that jobs run on; all other spark.* keys go to Spark as they are.")
)
