"""CREATE, ALTER, DROP, DESCRIBE and SHOW CREATE of models."""

from __future__ import annotations

from firesteel.table.binder.ddl.models import altered_model, create_model_text, created_model
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.models import FoundModel
from firesteel.table.catalog.objects import CatalogModel
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.result import TableResult, ok, rows_of, strings
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.parser.statements import alter, objects
from firesteel.types.logical import BooleanType, LogicalType, VarCharType

__all__ = ["alter_model", "create_model", "describe_model", "drop_model", "show_create_model"]


@execute_statement.register
def _create_model(statement: objects.CreateModel, session: TableSession) -> TableResult:
    create_model(session, statement.path, created_model(statement), statement.if_not_exists, statement.temporary)
    return ok()


def create_model(
    session: TableSession, path: tuple[str, ...], model: CatalogModel, ignore_if_exists: bool, temporary: bool
) -> None:
    """Adds a model to its catalog."""
    identifier = session.manager.qualify(path)
    try:
        session.manager.models.create(identifier, model, ignore_if_exists=ignore_if_exists, temporary=temporary)
    except CatalogException as error:
        raise ValidationError(error.message, hint=error.hint) from error


def drop_model(
    session: TableSession, path: tuple[str, ...], *, ignore_if_not_exists: bool, temporary: bool = False
) -> bool:
    """Removes a model; whether there was one."""
    identifier = session.manager.qualify(path)
    try:
        return session.manager.models.drop(identifier, ignore_if_not_exists=ignore_if_not_exists, temporary=temporary)
    except CatalogException as error:
        raise ValidationError(error.message, hint=error.hint) from error


def alter_model(statement: alter.AlterObject, session: TableSession) -> TableResult:
    """ALTER MODEL."""
    identifier = session.manager.qualify(statement.path)
    found = session.manager.models.find(identifier)
    if found is None:
        if statement.if_exists:
            return ok()
        raise ValidationError(f"Model {identifier} doesn't exist.", hint=session.manager.models.nearest(identifier))
    if found.is_temporary:
        raise ValidationError(f"Model {identifier} is a temporary model.", hint="Drop it, and create it again.")
    catalog, path = session.manager.get_catalog(identifier.catalog_name), identifier.to_object_path()
    change = statement.change
    try:
        if isinstance(change, alter.Rename):
            new = session.manager.qualify(change.new_path)
            if (new.catalog_name, new.database_name) != (identifier.catalog_name, identifier.database_name):
                raise ValidationError(f"Model {identifier} cannot be renamed to another database.")
            catalog.rename_model(path, new.object_name, ignore_if_not_exists=False)
        else:
            catalog.alter_model(path, altered_model(found.model, change), ignore_if_not_exists=False)
    except CatalogException as error:
        raise ValidationError(error.message, hint=error.hint) from error
    return ok()


def describe_model(path: tuple[str, ...], session: TableSession) -> TableResult:
    """DESCRIBE MODEL: the columns of its input and its output."""
    identifier = session.manager.qualify(path)
    found = session.manager.models.find(identifier)
    if found is None:
        raise ValidationError(
            f"Model with the identifier '{identifier.as_summary_string()}' doesn't exist.",
            hint=session.manager.models.nearest(identifier),
        )
    parts = [(column, is_input) for schema, is_input in _schemas(found, session) for column in schema.columns]
    has_comments = any(column.comment for column, _ in parts)
    names = ["name", "type", "null", "is input", *(["comment"] if has_comments else [])]
    text: LogicalType = VarCharType()
    types = [text, text, BooleanType(), BooleanType(), *([text] if has_comments else [])]
    schema = ResolvedSchema.physical(names, types)
    rows = [
        (
            column.name,
            column.data_type.copy(nullable=True).as_summary_string(),
            column.data_type.nullable,
            is_input,
            *((column.comment or "",) if has_comments else ()),
        )
        for column, is_input in parts
    ]
    return TableResult(schema, rows_of(schema.to_physical_row_data_type(), rows))


def show_create_model(path: tuple[str, ...], session: TableSession) -> TableResult:
    """SHOW CREATE MODEL."""
    identifier = session.manager.qualify(path)
    found = session.manager.models.find(identifier)
    if found is None:
        raise ValidationError(
            f"Could not execute SHOW CREATE MODEL. Model with identifier {identifier} does not exist.",
            hint=session.manager.models.nearest(identifier),
        )
    (inputs, _), (outputs, _) = _schemas(found, session)
    return strings(["result"], [(create_model_text(found, inputs, outputs),)])


def _schemas(found: FoundModel, session: TableSession) -> tuple[tuple[ResolvedSchema, bool], ...]:
    model = found.model
    return (
        (session.resolved_columns(model.input_schema), True),
        (session.resolved_columns(model.output_schema), False),
    )
