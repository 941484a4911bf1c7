"""A source of the rows of Parquet files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import TypeInformation
from firesteel.config.configuration import Configuration
from firesteel.connectors.files.discovery import check_discovery_interval
from firesteel.connectors.files.source import FileEnumeratorProvider, FileSource
from firesteel.filesystem.input_paths import find_input_files, to_input_path
from firesteel.filesystem.stores import configure_filesystems, get_filesystem
from firesteel.formats.parquet.file import ParquetFile, ParquetFormat
from firesteel.types.arrow import require_pyarrow

__all__ = ["ParquetSource"]


class ParquetSource(FileSource):
    """Reads all Parquet files at and beneath its paths; ends when all are read unless it monitors them.

    Each row becomes a Row with the columns' names, or with ``as_tuples`` a tuple, which is faster; ``columns`` are
    those to read, in that order. Directories are searched recursively; what begins with ``.`` or ``_`` is passed over
    there. Timestamps that are kept in UTC, among them those of 96 bits that Spark writes, become Instants, others a
    ``datetime`` without a zone. With a ``discovery_interval`` the source looks for new files so often, without end;
    see ``FileSourceBuilder.monitor_continuously``.
    """

    name: ClassVar[str] = "Parquet Source"

    def __init__(
        self,
        *paths: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        as_tuples: bool = False,
        discovery_interval: Duration | Time | timedelta | int | None = None,
    ) -> None:
        require_pyarrow("ParquetSource")
        if not paths:
            raise InvalidProgramError("ParquetSource needs at least one path to a file or directory.")
        self.parquet_format = ParquetFormat(columns, as_tuples=as_tuples)
        super().__init__(
            self.parquet_format,
            tuple(to_input_path(path) for path in paths),
            FileEnumeratorProvider.default_splittable_file_enumerator(),
            None if discovery_interval is None else check_discovery_interval(discovery_interval),
        )

    def get_type(self, configuration: Configuration | None = None) -> TypeInformation | None:
        """The type of the records, as the first file has it; None if there is no file.

        The configuration has the settings of a store (``s3.*``).
        """
        if configuration is not None:
            configure_filesystems(configuration)
        for root in self.paths:
            for found in find_input_files(root):
                path = found if isinstance(found, str) else found.path
                with (
                    get_filesystem(path).open(path, read_ahead=0) as file,
                    ParquetFile(path, file, self.parquet_format) as opened,
                ):
                    return opened.record_type
        return None
