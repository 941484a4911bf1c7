"""CREATE MODEL and ALTER MODEL: models of catalogs, and models as the statements that create them."""

from __future__ import annotations

from dataclasses import replace

from firesteel.table.binder.ddl.create_table import declared_schema
from firesteel.table.binder.ddl.show_create import options_text, sql_type
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.models import FoundModel
from firesteel.table.catalog.objects import CatalogModel
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.names import quoted, string_literal
from firesteel.table.parser.statements import alter, objects, tables
from firesteel.table.schema import Schema

__all__ = ["altered_model", "create_model_text", "created_model"]


def created_model(statement: objects.CreateModel) -> CatalogModel:
    """The model of CREATE MODEL."""
    if statement.query is not None:
        raise ValidationError("Unsupported query: CREATE MODEL … AS is not supported.")
    sql = statement.source.sql if statement.source is not None else ""
    inputs, outputs = (
        _columns(part, name, sql) for part, name in ((statement.input, "input"), (statement.output, "output"))
    )
    for schema, other, name, other_name in (
        (outputs, inputs, "Output", "input"),
        (inputs, outputs, "Input", "output"),
    ):
        if not schema.columns and other.columns:
            raise ValidationError(f"{name} column list can not be empty with non-empty {other_name} column list.")
    if not statement.options:
        raise ValidationError("Model property list can not be empty.", hint="Write WITH ('provider' = '…', …).")
    return CatalogModel.create_model(inputs, outputs, dict(statement.options), statement.comment)


def _columns(schema: tables.TableSchema | None, name: str, sql: str) -> Schema:
    if schema is None:
        return Schema()
    seen: set[str] = set()
    for column in schema.columns:
        if not isinstance(column, tables.PhysicalColumn):
            raise ValidationError(f"Column `{column.name}` can only be a physical column.")
        if column.name in seen:
            raise ValidationError(f"Duplicate {name} column name: '{column.name}'.")
        seen.add(column.name)
    return Schema(declared_schema(replace(schema, constraints=(), watermark=None), sql).columns)


def altered_model(model: CatalogModel, change: alter.Alter) -> CatalogModel:
    """The model with other options."""
    match change:
        case alter.SetOptions():
            options = {**model.options, **dict(change.options)}
        case alter.ResetOptions():
            if not change.keys:
                raise ValidationError("ALTER MODEL RESET does not support empty key.")
            options = {key: value for key, value in model.options.items() if key not in change.keys}
        case _:
            raise ValidationError("ALTER MODEL can RENAME a model, and SET and RESET its options.")
    return CatalogModel.create_model(model.input_schema, model.output_schema, options, model.comment)


def create_model_text(found: FoundModel, inputs: ResolvedSchema, outputs: ResolvedSchema) -> str:
    """CREATE MODEL."""
    text = f"CREATE {'TEMPORARY ' if found.is_temporary else ''}MODEL {found.identifier}\n"
    for word, schema in (("INPUT", inputs), ("OUTPUT", outputs)):
        columns = (
            f"{quoted(column.name)} {sql_type(column.data_type)}"
            + (f" COMMENT {string_literal(column.comment)}" if column.comment else "")
            for column in schema.columns
        )
        if schema.columns:
            text += f"{word} ({', '.join(columns)})\n"
    text += f"COMMENT {string_literal(found.model.comment)}\n" if found.model.comment else ""
    return text + options_text(found.model.options)
