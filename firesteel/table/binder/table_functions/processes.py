"""Calls of process table functions of the user, in FROM."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from firesteel.table.bound.errors import Position, ValidationError
from firesteel.table.bound.nodes import Cast, Expression, Literal
from firesteel.table.casts.implicit import supports_implicit_cast
from firesteel.table.parser import nodes
from firesteel.table.plan.correlates import ProcessTable
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.user_functions.definition import logical_type
from firesteel.table.user_functions.process import ArgumentTrait
from firesteel.types.logical import LocalZonedTimestampType, TimestampType

__all__ = ["bind_process_function"]

BindTable = Callable[[exp.Expression], LogicalNode]
BindExpression = Callable[[exp.Expression], Expression]
_SYSTEM = ("on_time", "uid")


def bind_process_function(
    call: nodes.Call, bind_table: BindTable, bind: BindExpression, place: Position | None
) -> LogicalNode:
    """The relation of a call; ``bind`` binds expressions without columns."""
    definition = call.args["definition"]
    wrapper = definition.wrapper
    given = _arguments(definition.name, [*wrapper._arguments, *_SYSTEM], call)
    table = given.get(wrapper._table)
    if table is None:
        raise ValidationError(
            f"Invalid argument value. Argument '{wrapper._table}' expects a table to be passed.",
            hint=f"Write {wrapper._table} => TABLE t.",
        )
    is_set = wrapper._arguments[wrapper._table] is ArgumentTrait.SET_SEMANTIC_TABLE
    partition: tuple[int, ...] | None = () if is_set else None
    inner = table
    if isinstance(table, nodes.TableArgument):
        inner = table.this
    node = bind_table(inner)
    if isinstance(table, nodes.TableArgument):
        if table.args.get("order"):
            raise ValidationError("ORDER BY of a table argument is not supported.", hint="Rows come as they are read.")
        by = table.args.get("partition_by") or ()
        if by and not is_set:
            raise ValidationError(
                "Only tables with set semantics may be partitioned. "
                f"The input of '{definition.name}' has row semantics."
            )
        if is_set:
            partition = tuple(_column(part, node) for part in by)
    scalars = tuple(
        (name, _scalar(name, type_, given.get(name), bind))
        for name, type_ in wrapper._arguments.items()
        if not isinstance(type_, ArgumentTrait)
    )
    on_time = given.get("on_time")
    time = None if on_time is None or isinstance(on_time, nodes.DefaultValue) else _time(on_time, node)
    return ProcessTable(node, definition, partition, scalars, time, place)


def _arguments(name: str, parameters: list[str], call: nodes.Call) -> dict[str, exp.Expression]:
    """The arguments by parameter; those without a name come first."""
    found: dict[str, exp.Expression] = {}
    if len(call.expressions) > len(parameters):
        raise ValidationError(f"{name} takes at most {len(parameters)} arguments.")
    for parameter, argument in zip(parameters, call.expressions, strict=False):
        is_named = isinstance(argument, exp.Kwarg)
        key = argument.this.name if is_named else parameter
        if key not in parameters or key in found:
            raise ValidationError(
                f"{name} has no parameter '{key}', or has two arguments for it.",
                hint=f"The parameters are {', '.join(parameters)}.",
            )
        found[key] = argument.expression if is_named else argument
    return found


def _scalar(name: str, type_: object, argument: exp.Expression | None, bind: BindExpression) -> Expression:
    target = logical_type(type_)  # type: ignore[arg-type]
    if argument is None or isinstance(argument, nodes.DefaultValue):
        if not target.nullable:
            raise ValidationError(f"Invalid argument value. Argument '{name}' must not be left out.")
        return Literal(target, None)
    bound = bind(argument)
    if not supports_implicit_cast(bound.type, target):
        raise ValidationError(
            f"Invalid argument type. Argument '{name}' expects {target.as_summary_string()}, not "
            f"{bound.type.as_summary_string()}."
        )
    if bound.type.copy() == target.copy():
        return bound
    return Cast(target.copy(bound.type.nullable), bound)


def _column(part: exp.Expression, node: LogicalNode) -> int:
    path = nodes.column_path(part)
    name = part.name if path is None else path[-1]
    names = list(node.row_type.field_names)
    if name not in names:
        raise ValidationError(f"'{name}' is not a column of the table argument, which has {', '.join(names)}.")
    return names.index(name)


def _time(descriptor: exp.Expression, node: LogicalNode) -> int:
    if not isinstance(descriptor, nodes.Call) or descriptor.function_name != "DESCRIPTOR":
        raise ValidationError("The argument 'on_time' must be a descriptor.", hint="Write on_time => DESCRIPTOR(ts).")
    if len(descriptor.expressions) != 1:
        raise ValidationError("The descriptor of 'on_time' must contain exactly one column.")
    index = _column(descriptor.expressions[0], node)
    type_ = node.row_type.fields[index].type
    if not isinstance(type_, (TimestampType, LocalZonedTimestampType)):
        raise ValidationError(f"The on_time argument must be a time attribute, but is {type_.as_summary_string()}.")
    return index
