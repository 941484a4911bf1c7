"""Parquet files of a table, written row group by row group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from firesteel.connectors.lakes.table import OutputFile

__all__ = ["ParquetOutput"]


class ParquetOutput(OutputFile):
    """Writes Tables of one schema to a stream, and describes the file by its metadata at the end."""

    def __init__(
        self,
        path: str,
        stream: Any,
        schema: Any,
        describe: Callable[[Any, int], Mapping[str, Any]],
        delete: Callable[[], None],
        **options: Any,
    ) -> None:
        import pyarrow.parquet

        self.path = path
        self.schema = schema
        self._stream = stream
        self._describe = describe
        self._delete = delete
        self._writer = pyarrow.parquet.ParquetWriter(stream, schema, **options)
        self._size = 0

    def write(self, data: Any) -> None:
        self._writer.write_table(data, row_group_size=max(1, data.num_rows))
        self._size += data.nbytes

    @property
    def size(self) -> int:
        with suppress(Exception):  # not every stream tells
            return int(self._stream.tell())
        return self._size

    def close(self) -> Mapping[str, Any]:
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        return self._describe(self._writer.writer.metadata, int(size))

    def discard(self) -> None:
        with suppress(Exception):
            self._writer.close()
        with suppress(Exception):
            self._stream.close()
        with suppress(Exception):
            self._delete()
