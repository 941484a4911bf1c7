"""What the configuration says about the plans of streaming queries."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.config.configuration import Configuration
from firesteel.config.table_options import (
    DISTINCT_AGG_SPLIT_BUCKET_NUM,
    DISTINCT_AGG_SPLIT_ENABLED,
    REQUIRE_ON_CONFLICT,
    UPSERT_MATERIALIZE,
)
from firesteel.table.bound.errors import ValidationError

__all__ = ["OptimizerOptions"]


@dataclass(frozen=True)
class OptimizerOptions:
    """The options that rules read."""

    upsert_materialize: str = "AUTO"
    """When a sink keeps the rows of its keys: AUTO, FORCE or NONE."""
    require_on_conflict: bool = False
    """Whether a sink whose key is not that of its query needs ON CONFLICT."""
    distinct_buckets: int | None = None
    """Into how many buckets distinct values are split, if they are."""
    is_bounded: bool = False
    """Whether the query is one of batch mode, whose results are those at the end."""

    @classmethod
    def of(cls, configuration: Configuration) -> OptimizerOptions:
        """Those of a configuration."""
        buckets = configuration.get(DISTINCT_AGG_SPLIT_BUCKET_NUM)
        if buckets < 1:
            raise ValidationError(f"{DISTINCT_AGG_SPLIT_BUCKET_NUM.key} must be positive, but is {buckets}.")
        is_split = configuration.get(DISTINCT_AGG_SPLIT_ENABLED)
        return cls(
            configuration.get(UPSERT_MATERIALIZE),
            configuration.get(REQUIRE_ON_CONFLICT),
            buckets if is_split else None,
        )
