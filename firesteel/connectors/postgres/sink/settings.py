"""Settings of a PostgresSink."""

from __future__ import annotations

from dataclasses import dataclass, field

from firesteel.connectors.postgres.connection import PostgresConnectionOptions
from firesteel.connectors.postgres.sink.row_conversion import RecordMapper
from firesteel.spi.sink import DeliveryGuarantee

__all__ = ["SinkSettings"]


@dataclass(frozen=True)
class SinkSettings:
    """The settings of a PostgresSink; made by its builder."""

    connection: PostgresConnectionOptions
    table: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    is_upsert: bool = False
    key: tuple[str, ...] | None = None
    """The key columns of an upsert; None for the primary key."""
    statement: str | None = None
    """Instead of a table: a statement that is executed with each record's values."""
    guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE
    staging: tuple[str, ...] | None = None
    mapper: RecordMapper | None = field(default=None, repr=False)
    batch_size: int = 5000
    batch_interval_ms: int = 0
    max_retries: int = 3

    @property
    def stages(self) -> bool:
        """Whether records wait in a staging table until their checkpoint is complete."""
        return self.guarantee is DeliveryGuarantee.EXACTLY_ONCE and not self.is_upsert and self.statement is None
