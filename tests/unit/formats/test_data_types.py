"""DataTypes in the schemas of formats."""

from __future__ import annotations

import io
from decimal import Decimal

import pytest

from firesteel.common import Row, Types
from firesteel.datastream.formats.csv import CsvRowSerializationSchema, CsvSchema
from firesteel.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from firesteel.table import DataTypes

ROW = DataTypes.ROW(
    [
        DataTypes.FIELD("id", DataTypes.BIGINT()),
        DataTypes.FIELD("name", DataTypes.STRING(), "who"),
        DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING())),
        DataTypes.FIELD("price", DataTypes.DECIMAL(10, 2)),
    ]
)


def test_the_columns_of_csv() -> None:
    schema = (
        CsvSchema.builder().add_number_column("n", DataTypes.SMALLINT()).add_array_column("a", "#", DataTypes.INT())
    )
    assert schema.build().row_type == Types.ROW_NAMED(["n", "a"], [Types.SHORT(), Types.OBJECT_ARRAY(Types.INT())])
    line = CsvRowSerializationSchema.Builder(ROW).build().serialize(Row(1, "x", ["a", "b"], Decimal("1.50")))
    assert line == b"1,x,a;b,1.50\n"


def test_the_columns_of_parquet() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    stream = io.BytesIO()
    writer = ParquetBulkWriters.for_row_type(ROW).create(stream)
    writer.add_element(Row(1, "x", ["a"], Decimal("1.50")))
    writer.finish()
    table = parquet.read_table(io.BytesIO(stream.getvalue()))
    assert table.to_pylist() == [{"id": 1, "name": "x", "tags": ["a"], "price": Decimal("1.50")}]
    assert str(table.schema.field("price").type) == "decimal128(10, 2)"
    assert ParquetColumnarRowInputFormat(ROW).row_type.get_field_names() == ["id", "name", "tags", "price"]


def test_types_print_as_flink_prints_them() -> None:
    assert str(ROW) == "ROW<`id` BIGINT, `name` STRING 'who', `tags` ARRAY<STRING>, `price` DECIMAL(10, 2)>"
    assert str(DataTypes.TIMESTAMP_LTZ(3, nullable=False)) == "TIMESTAMP_LTZ(3) NOT NULL"
    assert DataTypes.MAP(DataTypes.INT(), DataTypes.BYTES()) != DataTypes.MAP(DataTypes.INT(), DataTypes.STRING())
