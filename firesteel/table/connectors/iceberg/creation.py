"""New tables of Iceberg's catalogs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.iceberg.types import to_iceberg_schema
from firesteel.table.bound.errors import ValidationError
from firesteel.types.logical import RowType

__all__ = ["create_table"]


def create_table(
    catalog: Any,
    identifier: Sequence[str],
    row_type: RowType,
    key: tuple[str, ...],
    partition_keys: Sequence[str],
    properties: Mapping[str, str],
) -> Any:
    """Creates a table that is partitioned by the values of columns; the key is that of its identifier fields."""
    from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform

    try:
        schema = to_iceberg_schema(row_type, key)
    except InvalidProgramError as error:
        raise ValidationError(error.message, hint=error.hint) from error
    spec = UNPARTITIONED_PARTITION_SPEC
    if partition_keys:
        fields = [
            PartitionField(schema.find_field(name).field_id, 1000 + number, IdentityTransform(), name)
            for number, name in enumerate(partition_keys)
        ]
        spec = PartitionSpec(*fields)
    namespace = tuple(identifier[:-1])
    if not catalog.namespace_exists(namespace):
        catalog.create_namespace_if_not_exists(namespace)
    own = {name: value for name, value in properties.items() if name != "location"}
    return catalog.create_table(
        tuple(identifier), schema, location=properties.get("location"), partition_spec=spec, properties=own
    )
