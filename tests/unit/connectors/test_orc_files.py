"""ORC files written by a FileSink."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.common import Configuration, Row, Types
from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.files.sink import FileSink
from firesteel.datastream.formats.orc import OrcBulkWriters
from firesteel.table import DataTypes
from firesteel.testing import test_environment

ROW_TYPE = DataTypes.ROW(
    [DataTypes.FIELD("name", DataTypes.STRING()), DataTypes.FIELD("sizes", DataTypes.ARRAY(DataTypes.INT()))]
)
ROWS = [Row("a", [1, 2]), Row(None, []), Row("c", None)]


@pytest.mark.parametrize("compression", [None, "NONE", "ZSTD"])
def test_rows_are_written(tmp_path: Path, compression: str | None) -> None:
    orc = pytest.importorskip("pyarrow.orc")
    properties = None if compression is None else Configuration().set_string("orc.compress", compression)
    env = test_environment(1)
    type_info = Types.ROW_NAMED(["name", "sizes"], [Types.STRING(), Types.LIST(Types.INT())])
    sink = FileSink.for_bulk_format(str(tmp_path), OrcBulkWriters.for_row_type(ROW_TYPE, properties)).build()
    env.from_collection(ROWS, type_info).sink_to(sink)
    env.execute()
    (path,) = (path for path in tmp_path.rglob("part-*") if path.is_file())
    file = orc.ORCFile(str(path))
    assert file.compression == (compression or "ZLIB").replace("NONE", "UNCOMPRESSED")
    table = file.read()
    assert table.column_names == ["name", "sizes"]
    assert table.to_pylist() == [dict(zip(table.column_names, row, strict=True)) for row in ROWS]


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(TypeError, match="RowType"):
        OrcBulkWriters.for_row_type(Types.INT())  # type: ignore[arg-type]
    with pytest.raises(InvalidProgramError, match="no compression 'x'"):
        OrcBulkWriters.for_row_type(ROW_TYPE, Configuration().set_string("orc.compress", "x"))
