"""Changelogs as rows and back, in FROM: TO_CHANGELOG and FROM_CHANGELOG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from sqlglot import exp

from firesteel.common.types import RowKind
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, Literal
from firesteel.table.inference.families import is_character
from firesteel.table.parser import nodes
from firesteel.table.plan.changelogs import FromChangelog, ToChangelog
from firesteel.table.plan.nodes import LogicalNode

__all__ = ["CHANGELOG_FUNCTIONS", "bind_changelog_function"]

_PARAMETERS = ("input", "op", "op_mapping", "on_time", "uid")
_OPERATIONS = ", ".join(kind.name for kind in RowKind)
_DEFAULT = {kind.name: kind.name for kind in RowKind}
BindTable = Callable[[exp.Expression], LogicalNode]
BindExpression = Callable[[exp.Expression], Expression]


def bind_changelog_function(
    call: nodes.Call, bind_table: BindTable, bind: BindExpression, is_streaming: bool = True
) -> LogicalNode:
    """The relation of a call; ``bind`` binds expressions without columns."""
    name = call.function_name
    if not is_streaming:
        raise ValidationError(f"{name} is not supported in batch mode.", hint="Queries in streaming mode have changes.")
    arguments = _arguments(name, call)
    if "input" not in arguments:
        raise ValidationError(f"{name} takes a table.", hint=f"Write {name}(input => TABLE t).")
    if not _is_missing(arguments.get("on_time"), bind):
        raise ValidationError(f"The argument 'on_time' of {name} is not supported yet.")
    node = _input(name, arguments["input"], bind_table)
    column = _column_name(arguments.get("op"), bind)
    mapping = _mapping(arguments.get("op_mapping"), bind)
    return CHANGELOG_FUNCTIONS[name](node, column, mapping)


def _arguments(name: str, call: nodes.Call) -> dict[str, exp.Expression]:
    """The arguments by parameter; those without a name come first."""
    found: dict[str, exp.Expression] = {}
    if len(call.expressions) > len(_PARAMETERS):
        raise ValidationError(f"{name} takes at most {len(_PARAMETERS)} arguments.")
    for parameter, argument in zip(_PARAMETERS, call.expressions, strict=False):
        is_named = isinstance(argument, exp.Kwarg)
        key = argument.this.name if is_named else parameter
        if key not in _PARAMETERS or key in found:
            raise ValidationError(
                f"{name} has no parameter '{key}', or has two arguments for it.",
                hint=f"The parameters are {', '.join(_PARAMETERS)}, in lower case.",
            )
        found[key] = argument.expression if is_named else argument
    return found


def _is_missing(argument: exp.Expression | None, bind: BindExpression) -> bool:
    """Whether an argument is left out: it may be DEFAULT, or NULL."""
    if argument is None or isinstance(argument, nodes.DefaultValue):
        return True
    if isinstance(argument, (nodes.MapConstructor, nodes.Call)):
        return False
    bound = bind(argument)
    return isinstance(bound, Literal) and bound.value is None


def _input(name: str, table: exp.Expression, bind_table: BindTable) -> LogicalNode:
    if isinstance(table, nodes.TableArgument):
        for clause, what in (("partition_by", "partitioned"), ("order", "ordered")):
            if table.args.get(clause):
                raise ValidationError(
                    f"Only tables with set semantics may be {what}. The input of '{name}' has row semantics.",
                    hint=f"Remove {'PARTITION BY' if what == 'partitioned' else 'ORDER BY'}.",
                )
        return bind_table(table.this)
    if not isinstance(table, (exp.Subquery, exp.Query)):
        raise ValidationError(
            "Invalid argument value. Argument 'input' expects a table to be passed.",
            hint="Write TABLE t, or a query in parentheses.",
        )
    return bind_table(table)


def _column_name(descriptor: exp.Expression | None, bind: BindExpression) -> str:
    if descriptor is None or _is_missing(descriptor, bind):
        return "op"
    if not isinstance(descriptor, nodes.Call) or descriptor.function_name != "DESCRIPTOR":
        raise ValidationError("The argument 'op' must be a descriptor.", hint="Write op => DESCRIPTOR(name).")
    paths = [nodes.column_path(column) for column in descriptor.expressions]
    if len(paths) != 1 or paths[0] is None or len(paths[0]) != 1:
        raise ValidationError("The descriptor for argument 'op' must contain exactly one column name.")
    return str(paths[0][0])


def _mapping(argument: exp.Expression | None, bind: BindExpression) -> dict[str, str]:
    if argument is None or _is_missing(argument, bind):
        return _DEFAULT
    parts = argument.expressions if isinstance(argument, nodes.MapConstructor) else []
    if not parts or not all(isinstance(part, exp.Literal) and part.is_string for part in parts):
        raise ValidationError(
            "The 'op_mapping' argument must be a constant MAP literal.",
            hint="Write op_mapping => MAP['INSERT', 'c', 'DELETE', 'd'].",
        )
    texts = [part.name for part in parts]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _split(text: str) -> list[str]:
    """The parts between commas, without empty ones at the end, as in Java."""
    return text.rstrip(",").split(",")


def _kind(text: str, seen: set[RowKind], hint: str | None = None) -> RowKind:
    name = text.strip()
    if name not in RowKind.__members__:
        raise ValidationError(
            f"Invalid target mapping for argument 'op_mapping'. Unknown change operation: '{name}'. "
            f"Valid values are: [{_OPERATIONS}]."
        )
    kind = RowKind[name]
    if kind in seen:
        message = f"Invalid target mapping for argument 'op_mapping'. Duplicate change operation: '{name}'."
        raise ValidationError(message, hint=hint)
    seen.add(kind)
    return kind


def _to_changelog(node: LogicalNode, column: str, mapping: dict[str, str]) -> LogicalNode:
    seen: set[RowKind] = set()
    codes = tuple((_kind(name, seen), code) for names, code in mapping.items() for name in _split(names))
    names = Counter([column, *node.row_type.field_names])
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ValidationError(
            f"Field names must be unique. Found duplicates: [{', '.join(twice)}]",
            hint="Name the column of the operation with op => DESCRIPTOR(name).",
        )
    return ToChangelog(node, column, codes)


def _from_changelog(node: LogicalNode, column: str, mapping: dict[str, str]) -> LogicalNode:
    fields = node.row_type.fields
    if column not in node.row_type.field_names:
        raise ValidationError(
            f"The op column '{column}' does not exist in the input schema.",
            hint=f"The columns are {', '.join(node.row_type.field_names)}.",
        )
    index = node.row_type.field_names.index(column)
    if not is_character(fields[index].type):
        type_ = fields[index].type.as_summary_string()
        raise ValidationError(f"The op column '{column}' must be of STRING type, but was '{type_}'.")
    seen: set[RowKind] = set()
    hint = "Use comma-separated keys to map multiple codes to the same operation: MAP['c, r', 'INSERT']."
    kinds = [(codes, _kind(name, seen, hint)) for codes, name in mapping.items()]
    if RowKind.UPDATE_AFTER in seen and RowKind.UPDATE_BEFORE not in seen:
        raise ValidationError(
            "The 'op_mapping' must include UPDATE_BEFORE for retract mode. Upsert mode (without UPDATE_BEFORE) is not "
            "supported in this version."
        )
    codes = tuple((code.strip(), kind) for texts, kind in kinds for code in _split(texts))
    return FromChangelog(node, index, codes)


CHANGELOG_FUNCTIONS: dict[str, Callable[[LogicalNode, str, dict[str, str]], LogicalNode]] = {
    "TO_CHANGELOG": _to_changelog,
    "FROM_CHANGELOG": _from_changelog,
}
