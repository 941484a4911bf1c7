"""CREATE TABLE … LIKE: which parts of another table a table takes over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.objects import CatalogBaseTable
from firesteel.table.parser.statements.tables import LikeOption
from firesteel.table.schema import (
    Schema,
    UnresolvedColumn,
    UnresolvedComputedColumn,
    UnresolvedMetadataColumn,
    UnresolvedPhysicalColumn,
    UnresolvedPrimaryKey,
    UnresolvedWatermark,
)

__all__ = ["merged_with"]

_DEFAULTS = {
    "OPTIONS": "OVERWRITING",
    "WATERMARKS": "INCLUDING",
    "GENERATED": "INCLUDING",
    "METADATA": "INCLUDING",
    "CONSTRAINTS": "INCLUDING",
    "DISTRIBUTION": "INCLUDING",
    "PARTITIONS": "INCLUDING",
}
_NOT_OVERWRITTEN = ("CONSTRAINTS", "PARTITIONS", "DISTRIBUTION", "ALL")


def merged_with(base: CatalogBaseTable, own: CatalogBaseTable, options: Sequence[LikeOption]) -> CatalogBaseTable:
    """A table with its own parts and those of another one."""
    strategies = _strategies(options)
    schema = _schema(base.schema, own.schema, strategies)
    distribution, partition_keys = own.distribution, own.partition_keys
    if strategies["DISTRIBUTION"] != "EXCLUDING" and base.distribution is not None:
        if own.distribution is not None:
            raise ValidationError(
                "The base table already has a distribution defined. You might want to specify EXCLUDING DISTRIBUTION."
            )
        distribution = base.distribution
    if strategies["PARTITIONS"] != "EXCLUDING" and base.partition_keys:
        if own.partition_keys:
            raise ValidationError(
                "The base table already has partitions defined. You might want to specify EXCLUDING PARTITIONS."
            )
        partition_keys = base.partition_keys
    return replace(
        own,
        schema=schema,
        options=MappingProxyType(_options(base, own, strategies["OPTIONS"])),
        partition_keys=partition_keys,
        distribution=distribution,
        comment=own.comment,
    )


def _strategies(options: Sequence[LikeOption]) -> dict[str, str]:
    features = [option.feature for option in options]
    if len(set(features)) != len(features):
        raise ValidationError("Each like option feature can be declared only once.")
    for option in options:
        if option.strategy == "OVERWRITING" and option.feature in _NOT_OVERWRITTEN:
            raise ValidationError(f"Illegal merging strategy 'OVERWRITING' for '{option.feature}' option.")
    given = {option.feature: option.strategy for option in options}
    everything = given.pop("ALL", None)
    usual = _DEFAULTS if everything is None else dict.fromkeys(_DEFAULTS, everything)
    return {**usual, **given}


def _options(base: CatalogBaseTable, own: CatalogBaseTable, strategy: str) -> dict[str, str]:
    if strategy == "EXCLUDING":
        return dict(own.options)
    if strategy == "INCLUDING":
        for key in own.options:
            if key in base.options:
                raise ValidationError(
                    f"There already exists an option ['{key}' -> '{base.options[key]}']  in the base table. You might "
                    "want to specify EXCLUDING OPTIONS or OVERWRITING OPTIONS."
                )
    return {**base.options, **own.options}


def _schema(base: Schema, own: Schema, strategies: dict[str, str]) -> Schema:
    columns = {column.name: column for column in base.columns if _is_taken(column, strategies)}
    for column in own.columns:
        previous = columns.get(column.name)
        if previous is not None and not _overwrites(previous, column, strategies):
            raise _duplicate(previous, column)
        columns[column.name] = column
    return Schema(
        tuple(columns.values()), _watermarks(base, own, strategies["WATERMARKS"]), _key(base, own, strategies)
    )


def _is_taken(column: UnresolvedColumn, strategies: dict[str, str]) -> bool:
    if isinstance(column, UnresolvedComputedColumn):
        return strategies["GENERATED"] != "EXCLUDING"
    if isinstance(column, UnresolvedMetadataColumn):
        return strategies["METADATA"] != "EXCLUDING"
    return True


def _overwrites(previous: UnresolvedColumn, column: UnresolvedColumn, strategies: dict[str, str]) -> bool:
    for kind, feature in ((UnresolvedComputedColumn, "GENERATED"), (UnresolvedMetadataColumn, "METADATA")):
        if isinstance(previous, kind) and isinstance(column, kind):
            return strategies[feature] == "OVERWRITING"
    return False


def _duplicate(previous: UnresolvedColumn, column: UnresolvedColumn) -> ValidationError:
    if isinstance(column, UnresolvedComputedColumn) and isinstance(previous, UnresolvedComputedColumn):
        return ValidationError(
            f"A generated column named '{column.name}' already exists in the base table. You might want to specify "
            "EXCLUDING GENERATED or OVERWRITING GENERATED."
        )
    if isinstance(column, UnresolvedMetadataColumn) and isinstance(previous, UnresolvedMetadataColumn):
        return ValidationError(
            f"A metadata column named '{column.name}' already exists in the base table. You might want to specify "
            "EXCLUDING METADATA or OVERWRITING METADATA."
        )
    if isinstance(column, UnresolvedPhysicalColumn):
        return ValidationError(f"A column named '{column.name}' already exists in the base table.")
    return ValidationError(
        f"A column named '{column.name}' already exists in the table. Duplicate columns exist in the compute column "
        "and regular column. "
    )


def _watermarks(base: Schema, own: Schema, strategy: str) -> tuple[UnresolvedWatermark, ...]:
    if strategy == "EXCLUDING" or not base.watermarks:
        return own.watermarks
    if not own.watermarks:
        return base.watermarks
    if strategy == "OVERWRITING":
        return own.watermarks
    name = own.watermarks[0].column_name
    raise ValidationError(
        f"There already exists a watermark spec for column '{name}' in the base table. You might want to specify "
        "EXCLUDING WATERMARKS or OVERWRITING WATERMARKS."
    )


def _key(base: Schema, own: Schema, strategies: dict[str, str]) -> UnresolvedPrimaryKey | None:
    if strategies["CONSTRAINTS"] == "EXCLUDING" or base.key is None:
        return own.key
    if own.key is not None:
        raise ValidationError(
            "The base table already has a primary key. You might want to specify EXCLUDING CONSTRAINTS."
        )
    return base.key
