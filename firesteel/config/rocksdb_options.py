"""The configuration options of the RocksDB state backend."""

from __future__ import annotations

from firesteel.config.option import ConfigOptions

__all__ = [
    "ROCKSDB_BLOCK_CACHE_SIZE",
    "ROCKSDB_BLOCK_SIZE",
    "ROCKSDB_BLOOM_FILTER_BITS",
    "ROCKSDB_COMPACTION_STYLE",
    "ROCKSDB_COMPRESSION_PER_LEVEL",
    "ROCKSDB_DYNAMIC_LEVEL_SIZE",
    "ROCKSDB_FIXED_MEMORY_PER_SLOT",
    "ROCKSDB_LOCAL_DIRECTORY",
    "ROCKSDB_MANAGED_MEMORY",
    "ROCKSDB_MAX_LEVEL_BASE_SIZE",
    "ROCKSDB_MAX_OPEN_FILES",
    "ROCKSDB_PREDEFINED_OPTIONS",
    "ROCKSDB_RESTORE_OVERLAP_THRESHOLD",
    "ROCKSDB_TARGET_FILE_SIZE",
    "ROCKSDB_THREADS",
    "ROCKSDB_USE_BLOOM_FILTER",
    "ROCKSDB_WRITE_BUFFERS_TO_MERGE",
    "ROCKSDB_WRITE_BUFFER_COUNT",
    "ROCKSDB_WRITE_BUFFER_RATIO",
    "ROCKSDB_WRITE_BUFFER_SIZE",
]

_key = ConfigOptions.key

ROCKSDB_LOCAL_DIRECTORY = (
    _key("state.backend.rocksdb.localdir")
    .string_type()
    .no_default_value()
    .with_description("The local directory for RocksDB's files on each host; default: the temporary directory.")
)
ROCKSDB_MANAGED_MEMORY = (
    _key("state.backend.rocksdb.memory.managed")
    .boolean_type()
    .default_value(True)
    .with_description("Whether all databases of a slot share one memory budget, 128 mb unless a size is set.")
)
ROCKSDB_FIXED_MEMORY_PER_SLOT = (
    _key("state.backend.rocksdb.memory.fixed-per-slot")
    .memory_type()
    .no_default_value()
    .with_description("Memory shared by all databases of a slot, for write buffers, indexes and block cache.")
)
ROCKSDB_WRITE_BUFFER_RATIO = (
    _key("state.backend.rocksdb.memory.write-buffer-ratio")
    .double_type()
    .default_value(0.5)
    .with_description("Fraction of the shared memory for write buffers.")
)
ROCKSDB_PREDEFINED_OPTIONS = (
    _key("state.backend.rocksdb.predefined-options")
    .choice_type("DEFAULT", "SPINNING_DISK_OPTIMIZED", "SPINNING_DISK_OPTIMIZED_HIGH_MEM", "FLASH_SSD_OPTIMIZED")
    .default_value("DEFAULT")
    .with_description("Predefined RocksDB settings for a kind of disk; other options override them.")
)
ROCKSDB_BLOCK_CACHE_SIZE = (
    _key("state.backend.rocksdb.block.cache-size")
    .memory_type()
    .no_default_value()
    .with_description("Size of the block cache of each state if memory is not shared; RocksDB's default is 8 mb.")
)
ROCKSDB_BLOCK_SIZE = (
    _key("state.backend.rocksdb.block.blocksize")
    .memory_type()
    .no_default_value()
    .with_description("Approximate size of a data block; RocksDB's default is 4 kb.")
)
ROCKSDB_WRITE_BUFFER_SIZE = (
    _key("state.backend.rocksdb.writebuffer.size")
    .memory_type()
    .no_default_value()
    .with_description("Size of a write buffer (memtable); RocksDB's default is 64 mb.")
)
ROCKSDB_WRITE_BUFFER_COUNT = (
    _key("state.backend.rocksdb.writebuffer.count")
    .int_type()
    .no_default_value()
    .with_description("Maximum number of write buffers per state; RocksDB's default is 2.")
)
ROCKSDB_WRITE_BUFFERS_TO_MERGE = (
    _key("state.backend.rocksdb.writebuffer.number-to-merge")
    .int_type()
    .no_default_value()
    .with_description("Minimum number of write buffers that are merged before a flush; RocksDB's default is 1.")
)
ROCKSDB_COMPACTION_STYLE = (
    _key("state.backend.rocksdb.compaction.style")
    .choice_type("LEVEL", "UNIVERSAL", "FIFO")
    .no_default_value()
    .with_description(
        "The compaction style. Default: UNIVERSAL, with which incremental checkpoints write little more than the "
        "changes."
    )
)
ROCKSDB_DYNAMIC_LEVEL_SIZE = (
    _key("state.backend.rocksdb.compaction.level.use-dynamic-size")
    .boolean_type()
    .no_default_value()
    .with_description("Whether RocksDB derives the sizes of its levels from the size of the last level.")
)
ROCKSDB_TARGET_FILE_SIZE = (
    _key("state.backend.rocksdb.compaction.level.target-file-size-base")
    .memory_type()
    .no_default_value()
    .with_description("Target size of files written by compaction; RocksDB's default is 64 mb.")
)
ROCKSDB_MAX_LEVEL_BASE_SIZE = (
    _key("state.backend.rocksdb.compaction.level.max-size-level-base")
    .memory_type()
    .no_default_value()
    .with_description("Maximum size of the base level; RocksDB's default is 256 mb.")
)
ROCKSDB_COMPRESSION_PER_LEVEL = (
    _key("state.backend.rocksdb.compression.per.level")
    .choice_type(
        "NO_COMPRESSION",
        "SNAPPY_COMPRESSION",
        "ZLIB_COMPRESSION",
        "BZLIB2_COMPRESSION",
        "LZ4_COMPRESSION",
        "LZ4HC_COMPRESSION",
        "ZSTD_COMPRESSION",
    )
    .as_list()
    .default_value(["SNAPPY_COMPRESSION"])
    .with_description("Compression of files: one type for all levels, or one per level.")
)
ROCKSDB_USE_BLOOM_FILTER = (
    _key("state.backend.rocksdb.use-bloom-filter")
    .boolean_type()
    .default_value(True)
    .with_description("Whether files have a Bloom filter. In Flink: false.")
)
ROCKSDB_BLOOM_FILTER_BITS = (
    _key("state.backend.rocksdb.bloom-filter.bits-per-key")
    .double_type()
    .default_value(10.0)
    .with_description("Bits per key of the Bloom filter; more bits reduce false positives.")
)
ROCKSDB_THREADS = (
    _key("state.backend.rocksdb.thread.num")
    .int_type()
    .no_default_value()
    .with_description("Number of background threads for flushes and compactions; default: 2.")
)
ROCKSDB_MAX_OPEN_FILES = (
    _key("state.backend.rocksdb.files.open")
    .int_type()
    .no_default_value()
    .with_description("Maximum number of open files per database; -1 (the default) means no limit.")
)
ROCKSDB_RESTORE_OVERLAP_THRESHOLD = (
    _key("state.backend.rocksdb.restore-overlap-fraction-threshold")
    .double_type()
    .default_value(0.0)
    .with_description(
        "When rescaling: minimum fraction of a restored database that must belong to a subtask for the subtask to "
        "use that database instead of copying its keys."
    )
)
