"""CALL of procedures."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from firesteel.table.binder.calls import cast_to
from firesteel.table.binder.expressions import ExpressionBinder
from firesteel.table.binder.scope import Scope
from firesteel.table.bound.errors import ValidationError
from firesteel.table.casts.implicit import supports_implicit_cast
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.procedures import Procedure, ProcedureContext
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.result import TableResult, rows_of
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.evaluation.row_codegen import evaluate_constant
from firesteel.table.parser import nodes
from firesteel.table.parser.statements import utility
from firesteel.table.user_functions.conversion import to_external
from firesteel.types.logical import FieldsType, LogicalType

__all__: list[str] = []


@execute_statement.register
def _call(statement: utility.ProcedureCall, session: TableSession) -> TableResult:
    call = statement.call
    path = [*_path(call), str(call.args["this"])]
    procedure = _found(path, session)
    sql = statement.source.sql if statement.source is not None else ""
    given = _arguments(call, procedure, ".".join(path), sql, session)
    results = procedure.call(ProcedureContext(session.environment), **given)
    return _result(procedure.result_type, list(results))


def _path(call: nodes.Call) -> list[str]:
    return [part if isinstance(part, str) else part.name for part in call.args.get("path") or ()]


def _found(path: Sequence[str], session: TableSession) -> Procedure:
    identifier = session.manager.qualify(path)
    catalog = session.manager.find_catalog(identifier.catalog_name)
    if catalog is None:
        raise ValidationError(
            f"No match found for function signature {path[-1]}: there is no catalog '{identifier.catalog_name}'."
        )
    try:
        found = catalog.get_procedure(identifier.to_object_path())
    except CatalogException as error:
        raise ValidationError(error.message, hint=error.hint) from error
    if not isinstance(found, Procedure):
        raise ValidationError(f"The procedure {identifier.as_summary_string()} is no Procedure, but {found!r}.")
    return found


def _arguments(call: nodes.Call, procedure: Procedure, name: str, sql: str, session: TableSession) -> dict[str, Any]:
    """The values of arguments by parameter; constants, cast to the types that the procedure declares."""
    parameters = list(inspect.signature(procedure.call).parameters.values())[1:]
    names = [parameter.name for parameter in parameters]
    signature = f"{name}({', '.join(f'{each} => {_type(procedure, each).as_summary_string()}' for each in names)})"
    given: dict[str, exp.Expression] = {}
    if len(call.expressions) > len(names):
        raise ValidationError(f"No match found for function signature {name}.", hint=f"It is {signature}.")
    for position, argument in enumerate(call.expressions):
        is_named = isinstance(argument, exp.Kwarg)
        key = argument.this.name if is_named else names[position]
        if key not in names or key in given:
            raise ValidationError(
                f"The procedure {name} has no parameter '{key}', or has two arguments for it.",
                hint=f"It is {signature}.",
            )
        given[key] = argument.expression if is_named else argument
    missing = [each.name for each in parameters if each.default is each.empty and each.name not in given]
    if missing:
        raise ValidationError(
            f"The argument '{missing[0]}' of the procedure {name} is missing.", hint=f"It is {signature}."
        )
    values = session.expression_session()
    binder = ExpressionBinder(Scope(()), sql, values)
    found: dict[str, Any] = {}
    for key, argument in given.items():
        if isinstance(argument, nodes.DefaultValue):
            continue
        bound, type_ = binder.bind(argument), _type(procedure, key)
        if not supports_implicit_cast(bound.type, type_):
            raise ValidationError(
                f"Invalid argument '{key}' of the procedure {name}: {type_.as_summary_string()} expected, but "
                f"{bound.type.as_summary_string()} passed.",
                hint=f"It is {signature}.",
            )
        value = evaluate_constant(cast_to(bound, type_), values)
        convert = to_external(type_, values.local_time_zone)
        found[key] = value if value is None or convert is None else convert(value)
    return found


def _type(procedure: Procedure, parameter: str) -> LogicalType:
    if parameter not in procedure.argument_types:
        raise ValidationError(
            f"The procedure {type(procedure).__name__} does not declare the type of its parameter '{parameter}'.",
            hint=f"Set argument_types = {{'{parameter}': DataTypes.STRING(), …}} in its class.",
        )
    return procedure.argument_types[parameter]


def _result(type_: LogicalType, values: list[Any]) -> TableResult:
    """A column ``result``, or those of a ROW."""
    if isinstance(type_, FieldsType):
        schema = ResolvedSchema.physical([part.name for part in type_.fields], [part.type for part in type_.fields])
        rows = [tuple(value) for value in values]
    else:
        schema = ResolvedSchema.physical(["result"], [type_])
        rows = [(value,) for value in values]
    return TableResult(schema, rows_of(schema.to_physical_row_data_type(), rows))
