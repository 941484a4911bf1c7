"""RocksDB options of the databases of a slot, and their shared memory (block cache, write buffers)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompactionStyle,
    DBCompressionType,
    Options,
    WriteBufferManager,
)

from firesteel.config import rocksdb_options as options
from firesteel.config.configuration import Configuration

__all__ = ["RocksDBOptions"]

_MB = 1 << 20
_MANIFEST_BYTES = 256 * 1024
"""A checkpoint contains the manifest, which records every change of files: a new one is started beyond that length."""

_ARENA_BYTES = 128 * 1024
"""What write buffers grow by: with RocksDB's megabyte a few states would fill a small shared memory, unused."""

_COMPRESSIONS = {
    "NO_COMPRESSION": "none",
    "SNAPPY_COMPRESSION": "snappy",
    "ZLIB_COMPRESSION": "zlib",
    "BZLIB2_COMPRESSION": "bz2",
    "LZ4_COMPRESSION": "lz4",
    "LZ4HC_COMPRESSION": "lz4hc",
    "ZSTD_COMPRESSION": "zstd",
}


@dataclass(frozen=True)
class RocksDBOptions:
    """What is configured of RocksDB; None leaves it to RocksDB."""

    total_memory: int | None = 128 * _MB
    """For all databases of the process together; None: each column family has its own, as below."""
    write_buffer_ratio: float = 0.5
    block_cache_size: int | None = None
    block_size: int | None = None
    write_buffer_size: int | None = None
    write_buffer_count: int | None = None
    write_buffers_to_merge: int | None = None
    compaction_style: str = "UNIVERSAL"
    """RocksDB's own default, LEVEL, rewrites most of a small database every few checkpoints, and so uploads it."""
    dynamic_level_size: bool | None = None
    target_file_size: int | None = None
    max_level_base_size: int | None = None
    compression: tuple[str, ...] = ("SNAPPY_COMPRESSION",)
    bloom_filter_bits: int | None = 10
    background_threads: int | None = None
    max_open_files: int | None = None
    restore_overlap_threshold: float = 0.0
    """The part of a restored handle's key groups that must be ours for its database to become ours."""

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> RocksDBOptions:
        """The options a configuration sets, on top of the predefined ones it names."""
        settings = dict(_PREDEFINED[configuration.get(options.ROCKSDB_PREDEFINED_OPTIONS)])
        fixed = configuration.get(options.ROCKSDB_FIXED_MEMORY_PER_SLOT)
        if fixed is not None:
            settings["total_memory"] = fixed.bytes
        elif not configuration.get(options.ROCKSDB_MANAGED_MEMORY):
            settings["total_memory"] = None
        settings["write_buffer_ratio"] = configuration.get(options.ROCKSDB_WRITE_BUFFER_RATIO)
        settings["restore_overlap_threshold"] = configuration.get(options.ROCKSDB_RESTORE_OVERLAP_THRESHOLD)
        compression = configuration.get(options.ROCKSDB_COMPRESSION_PER_LEVEL)
        settings["compression"] = tuple(compression)
        if configuration.get(options.ROCKSDB_USE_BLOOM_FILTER):
            bits = configuration.get(options.ROCKSDB_BLOOM_FILTER_BITS)
            settings["bloom_filter_bits"] = round(bits)
        for name, option in _SIZES.items():
            size = configuration.get(option)
            if size is not None:
                settings[name] = size.bytes
        for name, plain in _PLAIN.items():
            value = configuration.get(plain)
            if value is not None:
                settings[name] = value
        return cls(**settings)

    def database(self) -> Options:
        """For opening a database; also the options of its default column family."""
        made = self.column_family()
        made.create_if_missing(True)
        made.create_missing_column_families(True)
        made.set_use_fsync(False)
        made.set_stats_dump_period_sec(0)
        made.set_keep_log_file_num(1)
        made.set_max_log_file_size(_MB)
        made.set_max_manifest_file_size(_MANIFEST_BYTES)
        made.set_max_background_jobs(self.background_threads or 2)
        if self.max_open_files is not None:
            made.set_max_open_files(self.max_open_files)
        if self.total_memory is not None:
            made.set_write_buffer_manager(_shared_memory(self.total_memory, self.write_buffer_ratio).write_buffers)
        return made

    def column_family(self) -> Options:
        """For opening or creating a column family."""
        made = Options(raw_mode=True)
        settings: tuple[tuple[Callable[[Any], None], Any], ...] = (
            (made.set_write_buffer_size, self.write_buffer_size),
            (made.set_max_write_buffer_number, self.write_buffer_count),
            (made.set_min_write_buffer_number_to_merge, self.write_buffers_to_merge),
            (made.set_target_file_size_base, self.target_file_size),
            (made.set_max_bytes_for_level_base, self.max_level_base_size),
            (made.set_level_compaction_dynamic_level_bytes, self.dynamic_level_size),
        )
        for set_it, value in settings:
            if value is not None:
                set_it(value)
        made.set_compaction_style(getattr(DBCompactionStyle, self.compaction_style.lower())())
        if self.total_memory is not None:
            made.set_arena_block_size(_ARENA_BYTES)
        compressions = [getattr(DBCompressionType, _COMPRESSIONS[name])() for name in self.compression]
        if len(compressions) == 1:
            made.set_compression_type(compressions[0])
        else:
            made.set_compression_per_level(compressions)
        made.set_block_based_table_factory(self._table_format())
        return made

    def _table_format(self) -> BlockBasedOptions:
        made = BlockBasedOptions()
        if self.total_memory is not None:
            made.set_block_cache(_shared_memory(self.total_memory, self.write_buffer_ratio).cache)
            # all that is read counts, so that the limit is one
            made.set_cache_index_and_filter_blocks(True)
            made.set_pin_l0_filter_and_index_blocks_in_cache(True)
        elif self.block_cache_size is not None:
            # one cache for all column families of a database would be a wider limit than was asked for
            made.set_block_cache(Cache(self.block_cache_size))
        if self.block_size is not None:
            made.set_block_size(self.block_size)
        if self.bloom_filter_bits is not None:
            made.set_bloom_filter(self.bloom_filter_bits, False)
        return made


@dataclass(frozen=True)
class _SharedMemory:
    cache: Cache
    write_buffers: WriteBufferManager


_shared: dict[tuple[int, float], _SharedMemory] = {}
_shared_lock = threading.Lock()


def _shared_memory(total: int, write_buffer_ratio: float) -> _SharedMemory:
    """The cache and write buffers of all databases in this process.

    As in Flink: write buffers are charged to the cache and may exceed their limit by half, so the limits are chosen
    for both together to keep to the total.
    """
    with _shared_lock:
        memory = _shared.get((total, write_buffer_ratio))
        if memory is None:
            cache = Cache(int((3 - write_buffer_ratio) * total / 3))
            buffers = WriteBufferManager.new_write_buffer_manager_with_cache(
                int(2 * total * write_buffer_ratio / 3), False, cache
            )
            memory = _shared[total, write_buffer_ratio] = _SharedMemory(cache, buffers)
        return memory


_SIZES = {
    "block_cache_size": options.ROCKSDB_BLOCK_CACHE_SIZE,
    "block_size": options.ROCKSDB_BLOCK_SIZE,
    "write_buffer_size": options.ROCKSDB_WRITE_BUFFER_SIZE,
    "target_file_size": options.ROCKSDB_TARGET_FILE_SIZE,
    "max_level_base_size": options.ROCKSDB_MAX_LEVEL_BASE_SIZE,
}
_PLAIN: dict[str, Any] = {
    "write_buffer_count": options.ROCKSDB_WRITE_BUFFER_COUNT,
    "write_buffers_to_merge": options.ROCKSDB_WRITE_BUFFERS_TO_MERGE,
    "compaction_style": options.ROCKSDB_COMPACTION_STYLE,
    "dynamic_level_size": options.ROCKSDB_DYNAMIC_LEVEL_SIZE,
    "background_threads": options.ROCKSDB_THREADS,
    "max_open_files": options.ROCKSDB_MAX_OPEN_FILES,
}
_PREDEFINED: dict[str, dict[str, Any]] = {
    "DEFAULT": {},
    "SPINNING_DISK_OPTIMIZED": {"compaction_style": "LEVEL", "dynamic_level_size": True, "background_threads": 4},
    "SPINNING_DISK_OPTIMIZED_HIGH_MEM": {
        "compaction_style": "LEVEL",
        "dynamic_level_size": True,
        "background_threads": 4,
        "target_file_size": 256 * _MB,
        "max_level_base_size": 1024 * _MB,
        "write_buffer_size": 64 * _MB,
        "write_buffers_to_merge": 3,
        "write_buffer_count": 4,
        "block_cache_size": 256 * _MB,
        "block_size": 128 * 1024,
        "bloom_filter_bits": 10,
    },
    "FLASH_SSD_OPTIMIZED": {"background_threads": 4},
}
