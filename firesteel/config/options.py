"""Every configuration option that is read anywhere, with Flink's own keys and defaults."""

from __future__ import annotations

from typing import Any

from firesteel.common.time import Duration
from firesteel.config import cluster_options
from firesteel.config.exchange_options import (  # noqa: F401 - found here like all others
    BATCH_KEY_BUCKETS,
    EPOCH_IDLE_INTERVAL,
    EPOCH_INTERVAL,
    EPOCH_MAX_RECORDS,
    EPOCH_RESUME,
    EPOCH_TARGET_DURATION,
    EPOCH_TRIGGER,
    EXCHANGE,
)
from firesteel.config.memory_size import MemorySize
from firesteel.config.option import ConfigOption, ConfigOptions
from firesteel.config.rocksdb_options import (  # noqa: F401 - found here like all others
    ROCKSDB_BLOCK_CACHE_SIZE,
    ROCKSDB_BLOCK_SIZE,
    ROCKSDB_BLOOM_FILTER_BITS,
    ROCKSDB_COMPACTION_STYLE,
    ROCKSDB_COMPRESSION_PER_LEVEL,
    ROCKSDB_DYNAMIC_LEVEL_SIZE,
    ROCKSDB_FIXED_MEMORY_PER_SLOT,
    ROCKSDB_LOCAL_DIRECTORY,
    ROCKSDB_MANAGED_MEMORY,
    ROCKSDB_MAX_LEVEL_BASE_SIZE,
    ROCKSDB_MAX_OPEN_FILES,
    ROCKSDB_PREDEFINED_OPTIONS,
    ROCKSDB_RESTORE_OVERLAP_THRESHOLD,
    ROCKSDB_TARGET_FILE_SIZE,
    ROCKSDB_THREADS,
    ROCKSDB_USE_BLOOM_FILTER,
    ROCKSDB_WRITE_BUFFER_COUNT,
    ROCKSDB_WRITE_BUFFER_RATIO,
    ROCKSDB_WRITE_BUFFER_SIZE,
    ROCKSDB_WRITE_BUFFERS_TO_MERGE,
)
from firesteel.config.scheduler_options import (  # noqa: F401 - found here like all others
    RESCALE_MAX_CHECKPOINT_FAILURES,
    RESCALE_MAX_DELAY,
    RESCALE_MIN_INCREASE,
    RESCALING_COOLDOWN,
    RESCALING_STABILIZATION_TIMEOUT,
    SCHEDULER,
    SUBMISSION_RESOURCE_WAIT_TIMEOUT,
    SUBMISSION_STABILIZATION_TIMEOUT,
)

__all__ = ["all_options"]

_key = ConfigOptions.key

# ---- parallelism and the program --------------------------------------------------------------------

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

# ---- execution --------------------------------------------------------------------------------------

RUNTIME_MODE = (
    _key("execution.runtime-mode")
    .choice_type("STREAMING", "BATCH", "AUTOMATIC")
    .default_value("STREAMING")
    .with_description("Whether the job runs record by record, stage by stage, or as its sources suggest.")
)
BUFFER_TIMEOUT_ENABLED = (
    _key("execution.buffer-timeout.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("Whether a buffer that is not full is sent after a while; if not, only full ones are.")
)
BUFFER_TIMEOUT = (
    _key("execution.buffer-timeout.interval")
    .duration_type()
    .default_value(Duration.of_millis(100))
    .with_deprecated_keys("execution.buffer-timeout")
    .with_description("How long a record may wait in a buffer for others; 0 sends each at once.")
)
ATTACHED = (
    _key("execution.attached")
    .boolean_type()
    .default_value(False)
    .with_description("Whether the client that submits a job waits until it is over.")
)

# ---- network ----------------------------------------------------------------------------------------

BUFFERS_PER_CHANNEL = (
    _key("taskmanager.network.memory.buffers-per-channel")
    .int_type()
    .default_value(2)
    .with_description("Buffers that a receiver keeps for each channel alone: its exclusive credit.")
)
FLOATING_BUFFERS_PER_GATE = (
    _key("taskmanager.network.memory.floating-buffers-per-gate")
    .int_type()
    .default_value(8)
    .with_description("Buffers that an input gate lends to those of its channels that have a backlog.")
)
MAX_BUFFERS_PER_CHANNEL = (
    _key("taskmanager.network.memory.max-buffers-per-channel")
    .int_type()
    .default_value(10)
    .with_description("The most buffers that one output channel may have waiting before its task holds back.")
)
SEGMENT_SIZE = (
    _key("taskmanager.memory.segment-size")
    .memory_type()
    .default_value(MemorySize.parse("32 kb"))
    .with_description("The size at which a buffer counts as full and is sent.")
)

# ---- slots, cancellation, heartbeats ----------------------------------------------------------------

SLOT_REQUEST_TIMEOUT = (
    _key("slot.request.timeout")
    .duration_type()
    .default_value(Duration.of_minutes(5))
    .with_description("How long a job waits for enough slots before it fails, once it is first in the queue for slots.")
)
TASK_CANCELLATION_INTERVAL = (
    _key("task.cancellation.interval")
    .duration_type()
    .default_value(Duration.of_seconds(30))
    .with_deprecated_keys("task.cancellation-interval")
    .with_description("How long after an attempt to cancel a task the next one is made.")
)
TASK_CANCELLATION_TIMEOUT = (
    _key("task.cancellation.timeout")
    .duration_type()
    .default_value(Duration.of_seconds(180))
    .with_description("How long a task may take to cancel before its process is ended; 0 waits for ever.")
)
HEARTBEAT_INTERVAL = (
    _key("heartbeat.interval")
    .duration_type()
    .default_value(Duration.of_seconds(10))
    .with_description("How often the JobMaster and each slot tell each other that they are alive.")
)
HEARTBEAT_TIMEOUT = (
    _key("heartbeat.timeout")
    .duration_type()
    .default_value(Duration.of_seconds(50))
    .with_description("How long without a heartbeat until the other side counts as lost.")
)

# ---- restart strategies -----------------------------------------------------------------------------

RESTART_STRATEGY = (
    _key("restart-strategy.type")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("restart-strategy")
    .with_description(
        "What happens after a failure: none, fixed-delay, failure-rate or exponential-delay;"
        " if unset, exponential-delay with checkpoints and none without."
    )
)
FIXED_DELAY_ATTEMPTS = (
    _key("restart-strategy.fixed-delay.attempts")
    .int_type()
    .default_value(1)
    .with_description("How many times a job is restarted before it fails for good.")
)
FIXED_DELAY_DELAY = (
    _key("restart-strategy.fixed-delay.delay")
    .duration_type()
    .default_value(Duration.of_seconds(1))
    .with_description("How long to wait between a failure and the restart.")
)
FAILURE_RATE_MAX_FAILURES = (
    _key("restart-strategy.failure-rate.max-failures-per-interval")
    .int_type()
    .default_value(1)
    .with_description("How many failures within the interval are still followed by a restart.")
)
FAILURE_RATE_INTERVAL = (
    _key("restart-strategy.failure-rate.failure-rate-interval")
    .duration_type()
    .default_value(Duration.of_minutes(1))
    .with_description("The interval in which failures are counted.")
)
FAILURE_RATE_DELAY = (
    _key("restart-strategy.failure-rate.delay")
    .duration_type()
    .default_value(Duration.of_seconds(1))
    .with_description("How long to wait between a failure and the restart.")
)
EXPONENTIAL_DELAY_INITIAL_BACKOFF = (
    _key("restart-strategy.exponential-delay.initial-backoff")
    .duration_type()
    .default_value(Duration.of_seconds(1))
    .with_description("How long to wait before the first restart.")
)
EXPONENTIAL_DELAY_MAX_BACKOFF = (
    _key("restart-strategy.exponential-delay.max-backoff")
    .duration_type()
    .default_value(Duration.of_minutes(1))
    .with_description("The longest wait before a restart.")
)
EXPONENTIAL_DELAY_BACKOFF_MULTIPLIER = (
    _key("restart-strategy.exponential-delay.backoff-multiplier")
    .double_type()
    .default_value(1.5)
    .with_description("By how much the wait grows with each failure.")
)
EXPONENTIAL_DELAY_RESET_BACKOFF_THRESHOLD = (
    _key("restart-strategy.exponential-delay.reset-backoff-threshold")
    .duration_type()
    .default_value(Duration.of_hours(1))
    .with_description("How long a job must run without a failure for the wait to start from the beginning again.")
)
EXPONENTIAL_DELAY_JITTER_FACTOR = (
    _key("restart-strategy.exponential-delay.jitter-factor")
    .double_type()
    .default_value(0.1)
    .with_description("The part of the wait that is random, so that jobs do not all restart at once.")
)
EXPONENTIAL_DELAY_ATTEMPTS_BEFORE_RESET = (
    _key("restart-strategy.exponential-delay.attempts-before-reset-backoff")
    .int_type()
    .default_value(0x7FFFFFFF)
    .with_description("How many restarts in a row, before the wait is reset, until the job fails for good.")
)

# ---- state and checkpoints --------------------------------------------------------------------------

STATE_BACKEND = (
    _key("state.backend.type")
    .string_type()
    .default_value("hashmap")
    .with_deprecated_keys("state.backend")
    .with_description("Where keyed state is kept while a job runs.")
)
CHECKPOINTING_INTERVAL = (
    _key("execution.checkpointing.interval")
    .duration_type()
    .no_default_value()
    .with_description("How often a checkpoint is taken; without it there are none.")
)
CHECKPOINTING_MODE = (
    _key("execution.checkpointing.mode")
    .choice_type("EXACTLY_ONCE", "AT_LEAST_ONCE")
    .default_value("EXACTLY_ONCE")
    .with_description("Whether barriers are aligned, so that each record counts in the state exactly once.")
)
CHECKPOINTING_TIMEOUT = (
    _key("execution.checkpointing.timeout")
    .duration_type()
    .default_value(Duration.of_minutes(10))
    .with_description("How long a checkpoint may take before it is given up.")
)
MIN_PAUSE_BETWEEN_CHECKPOINTS = (
    _key("execution.checkpointing.min-pause")
    .duration_type()
    .default_value(Duration.of_millis(0))
    .with_description("The least time between the end of a checkpoint and the start of the next.")
)
MAX_CONCURRENT_CHECKPOINTS = (
    _key("execution.checkpointing.max-concurrent-checkpoints")
    .int_type()
    .default_value(1)
    .with_description("How many checkpoints may be under way at once.")
)
TOLERABLE_FAILED_CHECKPOINTS = (
    _key("execution.checkpointing.tolerable-failed-checkpoints")
    .int_type()
    .default_value(0)
    .with_description("How many checkpoints in a row may fail before the job does.")
)
EXTERNALIZED_CHECKPOINT_RETENTION = (
    _key("execution.checkpointing.externalized-checkpoint-retention")
    .choice_type("DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS")
    .default_value("NO_EXTERNALIZED_CHECKPOINTS")
    .with_description("What becomes of a job's last checkpoints when the job is cancelled.")
)
CHECKPOINTS_DIRECTORY = (
    _key("execution.checkpointing.dir")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("state.checkpoints.dir", "state.backend.fs.checkpointdir")
    .with_description("The directory, on any file system, that checkpoints are written to.")
)
SAVEPOINTS_DIRECTORY = (
    _key("execution.checkpointing.savepoint-dir")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("state.savepoints.dir", "savepoints.state.backend.fs.dir")
    .with_description("The directory that savepoints are written to if none is named.")
)
MAX_RETAINED_CHECKPOINTS = (
    _key("execution.checkpointing.num-retained")
    .int_type()
    .default_value(1)
    .with_deprecated_keys("state.checkpoints.num-retained")
    .with_description("How many completed checkpoints are kept.")
)
INCREMENTAL_CHECKPOINTS = (
    _key("execution.checkpointing.incremental")
    .boolean_type()
    .default_value(True)
    .with_deprecated_keys("state.backend.incremental")
    .with_description("Whether a checkpoint writes only what changed since the last.")
)
SNAPSHOT_COMPRESSION = (
    _key("execution.checkpointing.snapshot-compression")
    .boolean_type()
    .default_value(False)
    .with_description("Whether keyed state is compressed in full checkpoints and savepoints.")
)
ENABLE_UNALIGNED = (
    _key("execution.checkpointing.unaligned.enabled")
    .boolean_type()
    .default_value(False)
    .with_deprecated_keys("execution.checkpointing.unaligned")
    .with_description("Whether barriers overtake records that wait in buffers.")
)
FORCE_UNALIGNED = (
    _key("execution.checkpointing.unaligned.forced")
    .boolean_type()
    .default_value(False)
    .with_description(
        "With unaligned checkpoints: whether barriers also overtake records that a partitioner of the user's own "
        "sends, which must then choose the same subtask each time it is asked."
    )
)
ALIGNED_CHECKPOINT_TIMEOUT = (
    _key("execution.checkpointing.aligned-checkpoint-timeout")
    .duration_type()
    .default_value(Duration.of_millis(0))
    .with_deprecated_keys("execution.checkpointing.alignment-timeout")
    .with_description("How long a checkpoint stays aligned before it goes on unaligned, if that is enabled.")
)
CHECKPOINTS_AFTER_TASKS_FINISH = (
    _key("execution.checkpointing.checkpoints-after-tasks-finish")
    .boolean_type()
    .default_value(True)
    .with_deprecated_keys("execution.checkpointing.checkpoints-after-tasks-finish.enabled")
    .with_description("Whether checkpoints go on while some tasks have finished.")
)
SAVEPOINT_PATH = (
    _key("execution.state-recovery.path")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("execution.savepoint.path")
    .with_description("The savepoint or checkpoint a job starts from.")
)
IGNORE_UNCLAIMED_STATE = (
    _key("execution.state-recovery.ignore-unclaimed-state")
    .boolean_type()
    .default_value(False)
    .with_deprecated_keys("execution.savepoint.ignore-unclaimed-state")
    .with_description("Whether state that belongs to no operator of the new job may be dropped.")
)
RESTORE_MODE = (
    _key("execution.state-recovery.claim-mode")
    .choice_type("NO_CLAIM", "CLAIM")
    .default_value("NO_CLAIM")
    .with_deprecated_keys("execution.savepoint-restore-mode")
    .with_description(
        "Whether a job that starts from a savepoint or a retained checkpoint owns it from then on and deletes it when"
        " it is no longer needed (CLAIM), or leaves it alone (NO_CLAIM)."
    )
)
INLINE_STATE_THRESHOLD = (
    _key("execution.checkpointing.data-inline-threshold")
    .memory_type()
    .default_value(MemorySize(20 * 1024))
    .with_deprecated_keys("state.storage.fs.memory-threshold", "state.backend.fs.memory-threshold")
    .with_description("State of at most that size stands in a checkpoint's metadata, not in a file; at most 1 mb.")
)
STATE_WRITE_BUFFER_SIZE = (
    _key("execution.checkpointing.write-buffer-size")
    .int_type()
    .default_value(4 * 1024)
    .with_deprecated_keys("state.storage.fs.write-buffer-size", "state.backend.fs.write-buffer-size")
    .with_description("Bytes that are gathered before they are written to a state file; at least the inline threshold.")
)
FILE_MERGING_ENABLED = (
    _key("execution.checkpointing.file-merging.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("Whether the state a subtask writes for a checkpoint goes into few files. In Flink: false.")
)
STATE_TRANSFER_THREADS = (
    _key("state.backend.rocksdb.checkpoint.transfer.thread.num")
    .int_type()
    .default_value(4)
    .with_description("How many threads of a subtask copy state files to and from the checkpoint storage.")
)
LOCAL_RECOVERY = (
    _key("execution.state-recovery.from-local")
    .boolean_type()
    .default_value(False)
    .with_deprecated_keys("state.backend.local-recovery")
    .with_description("Whether slots keep copies of state files, so that a restart on the same host downloads nothing.")
)
LOCAL_RECOVERY_DIRECTORY = (
    _key("execution.checkpointing.local-backup.dirs")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("taskmanager.state.local.root-dirs")
    .with_description("Where a host keeps its copies of state files; without it, among its temporary files.")
)
S3_ENDPOINT = (
    _key("s3.endpoint")
    .string_type()
    .no_default_value()
    .with_description("The address of the S3 service, where it is not Amazon's.")
)
S3_ACCESS_KEY = (
    _key("s3.access-key")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("s3.access.key")
    .with_description("The access key for S3; without it, the environment and the AWS profile are asked.")
)
S3_SECRET_KEY = (
    _key("s3.secret-key")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("s3.secret.key")
    .with_description("The secret that belongs to the access key.")
)
S3_SESSION_TOKEN = (
    _key("s3.session.token")
    .string_type()
    .no_default_value()
    .with_description("The token that belongs to temporary credentials for S3.")
)
S3_REGION = (
    _key("s3.endpoint.region").string_type().no_default_value().with_description("The region of the S3 service.")
)
S3_PATH_STYLE_ACCESS = (
    _key("s3.path.style.access")
    .boolean_type()
    .default_value(False)
    .with_deprecated_keys("s3.path-style-access")
    .with_description(
        "Whether a bucket is part of the path and not of the host name; most services but Amazon need it."
    )
)
S3_UPLOAD_PART_SIZE = (
    _key("s3.upload.min.part.size")
    .int_type()
    .default_value(5 * 1024 * 1024)
    .with_description("Bytes of a file that a sink uploads at once, as one part; S3 takes none below 5 MB.")
)
S3_UPLOAD_CONCURRENCY = (
    _key("s3.upload.max.concurrent.uploads")
    .int_type()
    .default_value(4)
    .with_description("How many parts a subtask of a sink uploads at the same time. In Flink: the number of cores.")
)
S3_UPLOAD_TIMEOUT = (
    _key("s3.upload.timeout")
    .duration_type()
    .default_value(Duration.of_minutes(1))
    .with_description("How long a request of a sink to S3 is repeated before the task fails. Not in Flink.")
)

LOG_LEVEL = (
    _key("env.log.level")
    .choice_type("TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", "FATAL", "OFF")
    .default_value("INFO")
    .with_description("From which level on log records of user functions are shown.")
)

# ---- metrics and Spark ------------------------------------------------------------------------------

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


def all_options() -> tuple[ConfigOption[Any], ...]:
    """Every option there is, in order of key."""
    found = (*globals().values(), *vars(cluster_options).values())
    options = (value for value in found if isinstance(value, ConfigOption))
    return tuple(sorted(options, key=lambda option: option.key))
