"""The rows over which SQL expressions are recorded from Flink, the recorded values, and how the two are read."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from firesteel.table.binder.expressions import ExpressionBinder
from firesteel.table.binder.scope import Scope
from firesteel.table.bound.nodes import Expression
from firesteel.table.bound.session import Session
from firesteel.table.parser import parse_expression, parse_type
from firesteel.table.parser.types import to_logical_type
from firesteel.table.values import temporal_text as temporal
from firesteel.table.values.bitmap import from_integers
from firesteel.table.values.calendar import day_number
from firesteel.table.values.numbers import single
from firesteel.table.values.variant import variant_text
from firesteel.types import logical as t
from firesteel.types.internal import to_column
from firesteel.types.logical import FieldsType, LogicalType

HERE = Path(__file__).parents[1] / "unit" / "table"
DIFFERENCES: dict[str, dict[str, str]] = json.loads((HERE / "recorded" / "differences.json").read_text())
"""By family, the expressions that are not as in Flink, with the reason."""
FAMILIES = sorted(DIFFERENCES)


class Recorded(NamedTuple):
    """What Flink said of an expression: a type and values, or a message."""

    sql: str
    type: str | None
    outcome: Any


class Inputs(NamedTuple):
    """The table t."""

    type: t.RowType
    rows: list[tuple[Any, ...]]
    columns: list[Any]


def logical_type(text: str) -> LogicalType:
    return to_logical_type(parse_type(text), text)


@lru_cache(maxsize=1)
def inputs() -> Inputs:
    read = json.loads((HERE / "recorded" / "inputs.json").read_text())
    names = [name for name, _ in read["columns"]]
    types = [logical_type(text) for _, text in read["columns"]]
    columns = [[from_json(row[name], type_) for row in read["rows"]] for name, type_ in zip(names, types, strict=True)]
    arrays = [to_column(values, type_) for values, type_ in zip(columns, types, strict=True)]
    return Inputs(t.RowType.of(names, types), list(zip(*columns, strict=True)), arrays)


def recorded(family: str) -> list[Recorded]:
    return [Recorded(*entry) for entry in json.loads((HERE / "recorded" / f"{family}.json").read_text())]


@cache
def session(family: str) -> Session:
    text = (HERE / "expressions" / f"{family}.txt").read_text()
    zone = next((line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("# zone:")), "UTC")
    return Session(zone, now=lambda: 1_600_000_000_000_000_000)


@cache
def bind(sql: str, of: Session | None = None) -> Expression:
    return ExpressionBinder(Scope.of(inputs().type, "t"), sql, of).bind(parse_expression(sql))


def from_json(value: Any, type_: LogicalType) -> Any:
    """A value as the JSON format of Flink reads it."""
    if value is None:
        return None
    match type_:
        case t.VarBinaryType() | t.BinaryType():
            return base64.b64decode(value)
        case t.MapType():
            return {from_json(key, type_.key_type): from_json(item, type_.value_type) for key, item in value.items()}
        case FieldsType():
            return tuple(from_json(value[part.name], part.type) for part in type_.fields)
    return from_recorded(value, type_)


def from_recorded(value: Any, type_: LogicalType) -> Any:
    """A recorded value as rows hold it."""
    if value is None:
        return None
    match type_:
        case t.DecimalType():
            return Decimal(str(value))
        case t.FloatType():
            return single(float(value))
        case t.DoubleType():
            return float(value)
        case t.DateType():
            return day_number(*map(int, value.lstrip("+").rsplit("-", 2)))
        case t.TimeType():
            return temporal.parse_time(value)
        case t.TimestampType() | t.LocalZonedTimestampType():
            return _java_timestamp(value)
        case t.VarBinaryType() | t.BinaryType():
            return bytes.fromhex(value)
        case t.BitmapType():
            return from_integers(int(number) for number in value.strip("{}").split(",") if number)
        case t.ArrayType():
            return [from_recorded(item, type_.element_type) for item in value]
        case t.MapType():
            return {from_recorded(k, type_.key_type): from_recorded(v, type_.value_type) for k, v in value}
        case t.MultisetType():
            return {from_recorded(k, type_.element_type): count for k, count in value}
        case FieldsType():
            return tuple(from_recorded(item, part) for item, part in zip(value, type_.children(), strict=True))
    return value


def _java_timestamp(text: str) -> int:
    """Java leaves out seconds that are 0."""
    date, _, time = text.rstrip("Z").replace("T", " ").partition(" ")
    return temporal.parse_timestamp(f"{date} {time if time.count(':') == 2 else f'{time}:00'}", 9)


def expected_values(entry: Recorded, type_: LogicalType) -> list[Any]:
    rows = len(inputs().rows)
    values = entry.outcome * rows if len(entry.outcome) == 1 else entry.outcome
    return [from_recorded(value, type_) for value in values]


def shown(values: list[Any], type_: LogicalType) -> list[Any]:
    """The values as they are recorded: a VARIANT as JSON."""
    if not isinstance(type_, t.VariantType):
        return values
    return [None if value is None else variant_text(value) for value in values]


def same(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether values are alike; NaN is NaN, and floats may differ in their last digit."""
    return len(left) == len(right) and all(map(_same, left, right))


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (left != left and right != right) or abs(left - right) <= 1e-14 * abs(right)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return same(left, right)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    return type(left) is type(right) and bool(left == right)


def record_batch() -> Any:
    return pa.RecordBatch.from_arrays(inputs().columns, names=list(inputs().type.field_names))
