"""Schemas of tables; the texts are those that Flink 2.3 prints."""

from __future__ import annotations

import pytest

from firesteel.table import DataTypes
from firesteel.table.catalog import Column, ResolvedSchema, UniqueConstraint
from firesteel.table.schema import Schema
from firesteel.table.table_schema import TableSchema


def test_schema_prints_as_ddl() -> None:
    schema = (
        Schema.new_builder()
        .column("a", "INT NOT NULL")
        .column("b", DataTypes.STRING())
        .column_by_expression("c", "a + 1")
        .column_by_metadata("m", "BIGINT", "key", True)
        .watermark("w", "w - INTERVAL '1' SECOND")
        .primary_key("a")
        .build()
    )
    assert str(schema) == (
        "(\n"
        "  `a` [INT NOT NULL],\n"
        "  `b` STRING,\n"
        "  `c` AS [a + 1],\n"
        "  `m` [BIGINT] METADATA FROM 'key' VIRTUAL,\n"
        "  WATERMARK FOR `w` AS [w - INTERVAL '1' SECOND],\n"
        "  CONSTRAINT `PK_a` PRIMARY KEY (`a`) NOT ENFORCED\n"
        ")"
    )


def test_key_has_a_name_and_several_columns() -> None:
    schema = Schema.new_builder().column_by_metadata("m", DataTypes.BIGINT()).primary_key_named("pk", "x", "y").build()
    assert str(schema) == "(\n  `m` BIGINT METADATA,\n  CONSTRAINT `pk` PRIMARY KEY (`x`, `y`) NOT ENFORCED\n)"


def test_builder_copies_a_schema_and_the_fields_of_a_row() -> None:
    first = Schema.new_builder().column("a", "INT").with_comment("it's").primary_key("a").build()
    row = DataTypes.ROW([DataTypes.FIELD("b", DataTypes.BIGINT()), DataTypes.FIELD("c", DataTypes.STRING())])
    both = Schema.new_builder().from_schema(first).from_row_data_type(row).build()
    assert [column.name for column in both.columns] == ["a", "b", "c"]
    assert "`a` [INT] COMMENT 'it''s'" in str(both)
    assert both.key == first.key


def test_second_key_and_a_key_without_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="Multiple primary keys"):
        Schema.new_builder().primary_key("a").primary_key("b")
    with pytest.raises(ValueError, match="at least a single column"):
        Schema.new_builder().primary_key()


def test_only_rows_have_fields() -> None:
    with pytest.raises(TypeError, match="ROW expected"):
        Schema.new_builder().from_row_data_type(DataTypes.INT())


def test_table_schema_prints_as_a_tree() -> None:
    schema = TableSchema(["a", "b"], [DataTypes.INT(), DataTypes.STRING()])
    assert str(schema) == "root\n |-- a: INT\n |-- b: STRING\n"
    assert schema.get_field_data_type("b") == schema.get_field_data_type(1) == DataTypes.STRING()
    assert schema.get_field_data_type(2) is None
    assert str(schema.to_schema()) == "(\n  `a` INT,\n  `b` STRING\n)"


def test_resolved_schema_prints_columns_and_makes_rows() -> None:
    schema = ResolvedSchema(
        [
            Column.physical("a", DataTypes.INT(False)),
            Column.metadata("m", DataTypes.BIGINT(), "key", True),
            Column.metadata("n", DataTypes.BIGINT(), None, False).with_comment("kept"),
        ],
        [],
        UniqueConstraint.primary_key("pk", ["a"]),
    )
    assert str(schema) == (
        "(\n"
        "  `a` INT NOT NULL,\n"
        "  `m` BIGINT METADATA FROM 'key' VIRTUAL,\n"
        "  `n` BIGINT METADATA COMMENT 'kept',\n"
        "  CONSTRAINT `pk` PRIMARY KEY (`a`) NOT ENFORCED\n"
        ")"
    )
    assert schema.get_primary_key_indexes() == [0]
    assert [field.name for field in schema.to_source_row_data_type().fields] == ["a", "m", "n"]
    assert [field.name for field in schema.to_physical_row_data_type().fields] == ["a"]
    assert [field.name for field in schema.to_sink_row_data_type().fields] == ["a", "n"]
    assert ResolvedSchema.of(schema.get_columns()) != schema
    assert str(schema.to_schema()) == str(schema)


def test_columns_have_one_name_each() -> None:
    with pytest.raises(ValueError, match=r"duplicates: \['a'\]"):
        ResolvedSchema.physical(["a", "a"], [DataTypes.INT(), DataTypes.INT()])
