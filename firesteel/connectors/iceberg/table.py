"""A table of Iceberg: its columns, files and commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from firesteel.connectors.iceberg import commits
from firesteel.connectors.iceberg.catalog import load_catalog, load_table
from firesteel.connectors.iceberg.data_files import new_data_file, split_by_partition
from firesteel.connectors.iceberg.types import row_type_of, to_iceberg
from firesteel.connectors.lakes.columns import to_schema
from firesteel.connectors.lakes.committable import LakeCommittable
from firesteel.connectors.lakes.parquet_output import ParquetOutput
from firesteel.connectors.lakes.table import LakeTable, OutputFile
from firesteel.types.logical import RowType

__all__ = ["IcebergTable"]

_TARGET_SIZE = "write.target-file-size-bytes"
_DEFAULT_TARGET_SIZE = 512 * 1024 * 1024
_CHANGES = "_firesteel_changes"


class IcebergTable(LakeTable):
    """A table by the properties of its catalog and its name; connects when it is needed."""

    format_name = "Iceberg"

    def __init__(
        self,
        catalog_name: str,
        properties: Mapping[str, str],
        identifier: Sequence[str],
        target_size: int | None = None,
    ) -> None:
        self.catalog_name = catalog_name
        self.properties = tuple(sorted(properties.items()))
        self.identifier = tuple(identifier)
        self.target_size = target_size

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("catalog", "loaded")}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IcebergTable) and self.__getstate__() == other.__getstate__()

    def __hash__(self) -> int:
        return hash((self.catalog_name, self.properties, self.identifier))

    def __repr__(self) -> str:
        return f"IcebergTable({self.catalog_name}.{'.'.join(self.identifier)})"

    @cached_property
    def catalog(self) -> Any:
        return load_catalog(self.catalog_name, dict(self.properties))

    @cached_property
    def loaded(self) -> Any:
        """The table of pyiceberg."""
        return load_table(self.catalog, self.catalog_name, self.identifier)

    def close(self) -> None:
        self.__dict__.pop("loaded", None)
        catalog = self.__dict__.pop("catalog", None)
        if catalog is not None:
            catalog.close()

    def describe(self) -> str:
        return f"the Iceberg table '{'.'.join(self.identifier)}' of the catalog '{self.catalog_name}'"

    def refresh(self) -> None:
        if "loaded" in self.__dict__:
            self.loaded.refresh()

    # -- columns -----------------------------------------------------------------------------------

    def row_type(self) -> RowType:
        return row_type_of(self.loaded.schema())

    def arrow_schema(self) -> Any:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        return schema_to_pyarrow(self.loaded.schema(), include_field_ids=True)

    def add_columns(self, row_type: RowType) -> None:
        with self.loaded.update_schema() as update:
            for part in row_type.fields:
                update.add_column(part.name, to_iceberg(part.type))
        self.refresh()

    # -- writing -----------------------------------------------------------------------------------

    def target_file_size(self) -> int:
        return self.target_size or int(self.loaded.properties.get(_TARGET_SIZE, _DEFAULT_TARGET_SIZE))

    def partitions(self, data: Any) -> Iterable[tuple[Any, Any]]:
        return split_by_partition(self.loaded, data)

    def new_file(self, partition: Any, name: str) -> OutputFile:
        return new_data_file(self.loaded, partition, name)

    def new_change_file(self, name: str, schema: Any) -> OutputFile:
        path = f"{self.loaded.location().rstrip('/')}/{_CHANGES}/{name}"
        io = self.loaded.io
        stream = io.new_output(path).create(overwrite=True)
        return ParquetOutput(path, stream, schema, lambda _metadata, _size: {}, lambda: io.delete(path))

    def read_change_file(self, path: str) -> Any:
        import pyarrow.parquet

        with self.loaded.io.new_input(path).open() as stream:
            return pyarrow.parquet.read_table(stream)

    # -- committing --------------------------------------------------------------------------------

    def is_committed(self, committable: LakeCommittable) -> bool:
        return commits.is_committed(self.loaded, committable)

    def append(self, committable: LakeCommittable) -> None:
        commits.append(self.loaded, committable)

    def apply_changes(
        self, committable: LakeCommittable, key: Sequence[str], upserts: Any, deleted: Any, name: str
    ) -> None:
        schema = self.arrow_schema()
        commits.apply_changes(self, committable, key, to_schema(upserts, schema), deleted, name)

    def overwrite(self, committable: LakeCommittable, by_partition: bool) -> None:
        commits.overwrite(self.loaded, committable, by_partition)

    def files_named(self, prefix: str) -> Iterator[str]:
        from pyiceberg.io.pyarrow import PyArrowFileIO

        io = self.loaded.io
        if not isinstance(io, PyArrowFileIO):
            return
        import pyarrow.fs as fs

        location = self.loaded.location().rstrip("/")
        scheme, netloc, root = PyArrowFileIO.parse_location(location)
        found = io.fs_by_scheme(scheme, netloc)
        for directory in ("data", _CHANGES):
            selector = fs.FileSelector(f"{root}/{directory}", recursive=True, allow_not_found=True)
            for info in found.get_file_info(selector):
                if info.type == fs.FileType.File and info.base_name.startswith(prefix):
                    yield f"{location}{info.path[len(root) :]}"

    def referenced(self, paths: Sequence[str]) -> set[str]:
        return commits.referenced(self.loaded, paths)

    def delete_file(self, path: str) -> None:
        try:
            self.loaded.io.delete(path)
        except FileNotFoundError:
            return
