"""The configuration options of a program: how it is planned, and what its functions get."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.option import ConfigOptions

__all__ = [
    "ATTACHED",
    "AUTO_GENERATE_UIDS",
    "AUTO_WATERMARK_INTERVAL",
    "CEP_MAX_PARTIAL_MATCHES",
    "CLOSURE_CLEANER_LEVEL",
    "CONVERT_TYPED_RECORDS",
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
    _key("parallelism.default").int_type().default_value(1).with_description("Default parallelism of operators.")
)
MAX_PARALLELISM = (
    _key("pipeline.max-parallelism")
    .int_type()
    .default_value(-1)
    .with_description(
        "Number of key groups, and therefore the maximum parallelism of keyed operators; -1 derives it "
        "from the parallelism."
    )
)
CEP_MAX_PARTIAL_MATCHES = (
    _key("pipeline.cep.max-partial-matches")
    .int_type()
    .default_value(100_000)
    .with_description(
        "Maximum number of partial matches of a pattern per key. A job that exceeds it fails with an error that names "
        "the pattern and the key; 0 is no limit. Not in Flink."
    )
)
PIPELINE_NAME = _key("pipeline.name").string_type().no_default_value().with_description("The name of the job.")
STRICT_CONFIG = (
    _key("pipeline.strict-config")
    .boolean_type()
    .default_value(False)
    .with_description("Whether an unknown configuration key is an error instead of a warning. Not in Flink.")
)
REQUIRED_DELIVERY_GUARANTEE = (
    _key("pipeline.required-delivery-guarantee")
    .choice_type("none", "at-least-once", "exactly-once")
    .default_value("none")
    .with_description(
        "Delivery guarantee required of every sink of the job. A job whose sinks, sources or checkpointing settings "
        "cannot provide it is rejected at submission."
    )
)
OPERATOR_CHAINING = (
    _key("pipeline.operator-chaining.enabled")
    .boolean_type()
    .default_value(True)
    .with_deprecated_keys("pipeline.operator-chaining")
    .with_description("Whether operators without an exchange between them are chained into one task.")
)
INLINE_FUNCTIONS = (
    _key("firesteel.codegen.inline-functions.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("Whether the bodies of simple lambdas are inlined into the generated loop of a chain.")
)
CONVERT_TYPED_RECORDS = (
    _key("pipeline.convert-typed-records")
    .boolean_type()
    .default_value(False)
    .with_description(
        "Whether records are converted to their declared type where they leave a chain of functions, and keys to the "
        "declared key type, as PyFlink does. Always set in PyFlink programs. It costs processor time for each record."
    )
)
OBJECT_REUSE = (
    _key("pipeline.object-reuse")
    .boolean_type()
    .default_value(False)
    .with_description(
        "Whether records and state values are passed on without copying. Functions must then not modify or keep "
        "objects that they received, emitted or stored."
    )
)
AUTO_WATERMARK_INTERVAL = (
    _key("pipeline.auto-watermark-interval")
    .duration_type()
    .default_value(Duration.of_millis(200))
    .with_description("Interval of periodic watermarks; 0 disables them.")
)
AUTO_GENERATE_UIDS = (
    _key("pipeline.auto-generate-uids")
    .boolean_type()
    .default_value(True)
    .with_description("Whether uids are generated for operators without one; if not, a missing uid is an error.")
)
CLOSURE_CLEANER_LEVEL = (
    _key("pipeline.closure-cleaner-level")
    .choice_type("NONE", "TOP_LEVEL", "RECURSIVE")
    .default_value("RECURSIVE")
    .with_description("For compatibility with Flink: Python functions need no closure cleaning.")
)
FORCE_AVRO = (
    _key("pipeline.force-avro")
    .boolean_type()
    .default_value(False)
    .with_description("For compatibility with Flink: there is no Avro serializer for Python objects.")
)
FORCE_KRYO = (
    _key("pipeline.force-kryo")
    .boolean_type()
    .default_value(False)
    .with_description("For compatibility with Flink: there is no Kryo serializer for Python objects.")
)
GENERIC_TYPES = (
    _key("pipeline.generic-types")
    .boolean_type()
    .default_value(True)
    .with_description("For compatibility with Flink: records may be of any type that can be pickled.")
)
GLOBAL_JOB_PARAMETERS = (
    _key("pipeline.global-job-parameters")
    .map_type()
    .no_default_value()
    .with_description("User-defined parameters, which every function can read.")
)
RUNTIME_MODE = (
    _key("execution.runtime-mode")
    .choice_type("STREAMING", "BATCH", "AUTOMATIC")
    .default_value("STREAMING")
    .with_description("The runtime mode: STREAMING, BATCH, or AUTOMATIC, which is BATCH if all sources are bounded.")
)
ATTACHED = (
    _key("execution.attached")
    .boolean_type()
    .default_value(False)
    .with_description("Whether the client waits until a submitted job has ended.")
)
LATENCY_INTERVAL = (
    _key("metrics.latency.interval")
    .duration_type()
    .default_value(Duration.of_millis(0))
    .with_description("Interval of latency markers emitted by sources; 0 disables them.")
)
SPARK_MASTER = (
    _key("spark.master")
    .string_type()
    .default_value("local[*]")
    .with_description("The Spark master. All other spark.* keys are also passed to Spark.")
)
