"""The configuration options of state: the backend, checkpoints, savepoints and recovery."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.memory_size import MemorySize
from firesteel.config.option import ConfigOptions

__all__ = [
    "ALIGNED_CHECKPOINT_TIMEOUT",
    "CHECKPOINTING_INTERVAL",
    "CHECKPOINTING_MODE",
    "CHECKPOINTING_TIMEOUT",
    "CHECKPOINTS_AFTER_TASKS_FINISH",
    "CHECKPOINTS_DIRECTORY",
    "ENABLE_UNALIGNED",
    "EXTERNALIZED_CHECKPOINT_RETENTION",
    "FILE_MERGING_ENABLED",
    "FORCE_UNALIGNED",
    "IGNORE_UNCLAIMED_STATE",
    "INCREMENTAL_CHECKPOINTS",
    "INLINE_STATE_THRESHOLD",
    "LOCAL_RECOVERY",
    "LOCAL_RECOVERY_DIRECTORY",
    "MAX_CONCURRENT_CHECKPOINTS",
    "MAX_RETAINED_CHECKPOINTS",
    "MIN_PAUSE_BETWEEN_CHECKPOINTS",
    "RESTORE_MODE",
    "SAVEPOINTS_DIRECTORY",
    "SAVEPOINT_PATH",
    "SNAPSHOT_COMPRESSION",
    "STATE_BACKEND",
    "STATE_TRANSFER_THREADS",
    "STATE_WRITE_BUFFER_SIZE",
    "TOLERABLE_FAILED_CHECKPOINTS",
]

_key = ConfigOptions.key

STATE_BACKEND = (
    _key("state.backend.type")
    .string_type()
    .default_value("hashmap")
    .with_deprecated_keys("state.backend")
    .with_description("The state backend that stores keyed state while a job runs.")
)
CHECKPOINTING_INTERVAL = (
    _key("execution.checkpointing.interval")
    .duration_type()
    .no_default_value()
    .with_description("Interval between periodic checkpoints. If not set, no checkpoints are taken.")
)
CHECKPOINTING_MODE = (
    _key("execution.checkpointing.mode")
    .choice_type("EXACTLY_ONCE", "AT_LEAST_ONCE")
    .default_value("EXACTLY_ONCE")
    .with_description(
        "The checkpointing mode. EXACTLY_ONCE aligns barriers, so that each record affects the state exactly once."
    )
)
CHECKPOINTING_TIMEOUT = (
    _key("execution.checkpointing.timeout")
    .duration_type()
    .default_value(Duration.of_minutes(10))
    .with_description("Maximum duration of a checkpoint; a checkpoint that takes longer is aborted.")
)
MIN_PAUSE_BETWEEN_CHECKPOINTS = (
    _key("execution.checkpointing.min-pause")
    .duration_type()
    .default_value(Duration.of_millis(0))
    .with_description("Minimum pause between the end of a checkpoint and the start of the next.")
)
MAX_CONCURRENT_CHECKPOINTS = (
    _key("execution.checkpointing.max-concurrent-checkpoints")
    .int_type()
    .default_value(1)
    .with_description("Maximum number of concurrent checkpoints.")
)
TOLERABLE_FAILED_CHECKPOINTS = (
    _key("execution.checkpointing.tolerable-failed-checkpoints")
    .int_type()
    .default_value(0)
    .with_description("Number of consecutive checkpoint failures that are tolerated before the job fails.")
)
EXTERNALIZED_CHECKPOINT_RETENTION = (
    _key("execution.checkpointing.externalized-checkpoint-retention")
    .choice_type("DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS")
    .default_value("NO_EXTERNALIZED_CHECKPOINTS")
    .with_description("Whether the last checkpoints of a job are retained when the job is cancelled.")
)
CHECKPOINTS_DIRECTORY = (
    _key("execution.checkpointing.dir")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("state.checkpoints.dir", "state.backend.fs.checkpointdir")
    .with_description("The directory, on any supported file system, to which checkpoints are written.")
)
SAVEPOINTS_DIRECTORY = (
    _key("execution.checkpointing.savepoint-dir")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("state.savepoints.dir", "savepoints.state.backend.fs.dir")
    .with_description("The default target directory of savepoints.")
)
MAX_RETAINED_CHECKPOINTS = (
    _key("execution.checkpointing.num-retained")
    .int_type()
    .default_value(1)
    .with_deprecated_keys("state.checkpoints.num-retained")
    .with_description("Maximum number of completed checkpoints to retain.")
)
INCREMENTAL_CHECKPOINTS = (
    _key("execution.checkpointing.incremental")
    .boolean_type()
    .default_value(True)
    .with_deprecated_keys("state.backend.incremental")
    .with_description("Whether checkpoints are incremental, that is, write only changes since the last checkpoint.")
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
    .with_description("Whether checkpoints are unaligned, that is, barriers overtake buffered records.")
)
FORCE_UNALIGNED = (
    _key("execution.checkpointing.unaligned.forced")
    .boolean_type()
    .default_value(False)
    .with_description(
        "With unaligned checkpoints: whether barriers also overtake records of a user-defined partitioner, which "
        "must then be deterministic."
    )
)
ALIGNED_CHECKPOINT_TIMEOUT = (
    _key("execution.checkpointing.aligned-checkpoint-timeout")
    .duration_type()
    .default_value(Duration.of_millis(0))
    .with_deprecated_keys("execution.checkpointing.alignment-timeout")
    .with_description(
        "Time after which an aligned checkpoint switches to unaligned, if unaligned checkpoints are enabled."
    )
)
CHECKPOINTS_AFTER_TASKS_FINISH = (
    _key("execution.checkpointing.checkpoints-after-tasks-finish")
    .boolean_type()
    .default_value(True)
    .with_deprecated_keys("execution.checkpointing.checkpoints-after-tasks-finish.enabled")
    .with_description("Whether checkpoints are taken after some tasks have finished.")
)
SAVEPOINT_PATH = (
    _key("execution.state-recovery.path")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("execution.savepoint.path")
    .with_description("The savepoint or checkpoint from which a job is restored.")
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
        "Whether a job restored from a savepoint or a retained checkpoint takes ownership of it and deletes it when "
        "it is no longer needed (CLAIM), or never deletes it (NO_CLAIM)."
    )
)
INLINE_STATE_THRESHOLD = (
    _key("execution.checkpointing.data-inline-threshold")
    .memory_type()
    .default_value(MemorySize(20 * 1024))
    .with_deprecated_keys("state.storage.fs.memory-threshold", "state.backend.fs.memory-threshold")
    .with_description(
        "Maximum size of state that is stored in the checkpoint metadata instead of a file; at most 1 mb."
    )
)
STATE_WRITE_BUFFER_SIZE = (
    _key("execution.checkpointing.write-buffer-size")
    .int_type()
    .default_value(4 * 1024)
    .with_deprecated_keys("state.storage.fs.write-buffer-size", "state.backend.fs.write-buffer-size")
    .with_description("Size of the write buffer of a state file; at least the inline threshold.")
)
FILE_MERGING_ENABLED = (
    _key("execution.checkpointing.file-merging.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("Whether the state files of a subtask are merged into fewer files. In Flink: false.")
)
STATE_TRANSFER_THREADS = (
    _key("state.backend.rocksdb.checkpoint.transfer.thread.num")
    .int_type()
    .default_value(4)
    .with_description("Number of threads per subtask that transfer state files to and from the checkpoint storage.")
)
LOCAL_RECOVERY = (
    _key("execution.state-recovery.from-local")
    .boolean_type()
    .default_value(False)
    .with_deprecated_keys("state.backend.local-recovery")
    .with_description(
        "Whether slots keep local copies of state files, so that a restart on the same host need not download them."
    )
)
LOCAL_RECOVERY_DIRECTORY = (
    _key("execution.checkpointing.local-backup.dirs")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("taskmanager.state.local.root-dirs")
    .with_description("The directory for local copies of state files; default: the temporary directory.")
)
