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
    .with_description("The directory on each host that RocksDB keeps its files in; the temporary directory if unset.")
)
ROCKSDB_MANAGED_MEMORY = (
    _key("state.backend.rocksdb.memory.managed")
    .boolean_type()
    .default_value(True)
    .with_description("Whether all databases of a slot share one limited memory, 128 mb unless a size is fixed.")
)
ROCKSDB_FIXED_MEMORY_PER_SLOT = (
    _key("state.backend.rocksdb.memory.fixed-per-slot")
    .memory_type()
    .no_default_value()
    .with_description("The memory that all databases of a slot share: write buffers, indexes and block cache.")
)
ROCKSDB_WRITE_BUFFER_RATIO = (
    _key("state.backend.rocksdb.memory.write-buffer-ratio")
    .double_type()
    .default_value(0.5)
    .with_description("The part of the shared memory that write buffers may take.")
)
ROCKSDB_PREDEFINED_OPTIONS = (
    _key("state.backend.rocksdb.predefined-options")
    .choice_type("DEFAULT", "SPINNING_DISK_OPTIMIZED", "SPINNING_DISK_OPTIMIZED_HIGH_MEM", "FLASH_SSD_OPTIMIZED")
    .default_value("DEFAULT")
    .with_description("Settings for a kind of disk, which the other options refine.")
)
ROCKSDB_BLOCK_CACHE_SIZE = (
    _key("state.backend.rocksdb.block.cache-size")
    .memory_type()
    .no_default_value()
    .with_description("The block cache of each state where memory is not shared; RocksDB's own default is 8 mb.")
)
ROCKSDB_BLOCK_SIZE = (
    _key("state.backend.rocksdb.block.blocksize")
    .memory_type()
    .no_default_value()
    .with_description("About how much of a file is read at once; RocksDB's own default is 4 kb.")
)
ROCKSDB_WRITE_BUFFER_SIZE = (
    _key("state.backend.rocksdb.writebuffer.size")
    .memory_type()
    .no_default_value()
    .with_description(
        "How much of a state is gathered in memory before it becomes a file; RocksDB's own default is 64 mb."
    )
)
ROCKSDB_WRITE_BUFFER_COUNT = (
    _key("state.backend.rocksdb.writebuffer.count")
    .int_type()
    .no_default_value()
    .with_description("How many write buffers a state may have at once; RocksDB's own default is 2.")
)
ROCKSDB_WRITE_BUFFERS_TO_MERGE = (
    _key("state.backend.rocksdb.writebuffer.number-to-merge")
    .int_type()
    .no_default_value()
    .with_description("How many write buffers become one file; RocksDB's own default is 1.")
)
ROCKSDB_COMPACTION_STYLE = (
    _key("state.backend.rocksdb.compaction.style")
    .choice_type("LEVEL", "UNIVERSAL", "FIFO")
    .no_default_value()
    .with_description(
        "How RocksDB merges files; UNIVERSAL, if unset, lets checkpoints write little more than what changed."
    )
)
ROCKSDB_DYNAMIC_LEVEL_SIZE = (
    _key("state.backend.rocksdb.compaction.level.use-dynamic-size")
    .boolean_type()
    .no_default_value()
    .with_description("Whether RocksDB chooses the size of its levels by what the last one holds.")
)
ROCKSDB_TARGET_FILE_SIZE = (
    _key("state.backend.rocksdb.compaction.level.target-file-size-base")
    .memory_type()
    .no_default_value()
    .with_description("The size of files that compaction writes; RocksDB's own default is 64 mb.")
)
ROCKSDB_MAX_LEVEL_BASE_SIZE = (
    _key("state.backend.rocksdb.compaction.level.max-size-level-base")
    .memory_type()
    .no_default_value()
    .with_description("The size of the first sorted level; RocksDB's own default is 256 mb.")
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
    .with_description("How files are compressed: one way for all levels, or one for each.")
)
ROCKSDB_USE_BLOOM_FILTER = (
    _key("state.backend.rocksdb.use-bloom-filter")
    .boolean_type()
    .default_value(True)
    .with_description("Whether each file gets a filter that tells which keys it cannot contain. In Flink: false.")
)
ROCKSDB_BLOOM_FILTER_BITS = (
    _key("state.backend.rocksdb.bloom-filter.bits-per-key")
    .double_type()
    .default_value(10.0)
    .with_description("How large those filters are, and so how rarely they err.")
)
ROCKSDB_THREADS = (
    _key("state.backend.rocksdb.thread.num")
    .int_type()
    .no_default_value()
    .with_description("How many threads write and compact files in the background; 2 if unset.")
)
ROCKSDB_MAX_OPEN_FILES = (
    _key("state.backend.rocksdb.files.open")
    .int_type()
    .no_default_value()
    .with_description("How many files a database keeps open; -1, the default, all.")
)
ROCKSDB_RESTORE_OVERLAP_THRESHOLD = (
    _key("state.backend.rocksdb.restore-overlap-fraction-threshold")
    .double_type()
    .default_value(0.0)
    .with_description(
        "When the parallelism changes: the part of a restored database that must be a subtask's own for it to go on"
        " with that database instead of copying."
    )
)
