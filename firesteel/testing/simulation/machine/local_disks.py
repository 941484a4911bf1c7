"""Local disks of a simulated cluster: a temporary directory of the real one, which the RocksDB backend writes to."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from firesteel.runtime.state.rocksdb import options
from firesteel.testing.simulation.machine.standard_library import replaced

__all__ = ["local_disks"]


@contextmanager
def local_disks() -> Iterator[None]:
    """While it lasts, there are local disks; they are empty before and after.

    Databases are not compacted: RocksDB does so in real threads, and which files it has then depends on real time.
    """
    column_family = options.RocksDBOptions.column_family

    def without_compaction(self: options.RocksDBOptions) -> Any:
        made = column_family(self)
        made.set_disable_auto_compactions(True)
        return made

    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="firesteel-simulation-"))
        stack.enter_context(replaced(tempfile, tempdir=directory))
        stack.enter_context(replaced(options.RocksDBOptions, column_family=without_compaction))
        yield
