"""The source of the connector ``nexmark``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.generators.nexmark import NexmarkConfig
from firesteel.table.bound.nodes import Expression, InputRef, Literal, walk
from firesteel.table.bound.session import Session
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.connectors.nexmark.columns import Path, generate, numbers_of, type_of
from firesteel.table.connectors.nexmark.events import AUCTION, BID, PERSON, Events
from firesteel.table.evaluation.row_codegen import evaluate_constant
from firesteel.table.plan.rewriting import inlined
from firesteel.table.runtime.generator_source import ColumnGenerator, ColumnGeneratorSource
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.datastream import DataStream

__all__ = ["ALL_KINDS", "NexmarkColumnGenerator", "NexmarkTableSource"]

ALL_KINDS = frozenset({PERSON, AUCTION, BID})


@dataclass(frozen=True)
class NexmarkColumnGenerator(ColumnGenerator):
    """Makes the columns that are read of the events of some kinds."""

    config: NexmarkConfig
    paths: tuple[Path, ...]
    row_type: RowType
    kinds: frozenset[int] = ALL_KINDS

    @property
    def indexes_per_row(self) -> float:  # type: ignore[override]
        config = self.config
        shares = (config.person_proportion, config.auction_proportion, config.bid_proportion)
        wanted = sum(shares[kind] for kind in self.kinds)
        return config.total_proportion / wanted if wanted else 1.0

    def generate(self, indexes: range) -> Any:
        events = Events(self.config, numbers_of(self.config, indexes))
        columns = generate(events, self.kinds, self.paths)
        return require_pyarrow("SQL").RecordBatch.from_arrays(columns, schema=columns_schema(self.row_type))


@dataclass(frozen=True)
class NexmarkTableSource(ScanTableSource):
    """Persons, auctions and bids, as far as they are read."""

    config: NexmarkConfig
    paths: tuple[Path, ...]
    """The columns, or fields of them, of its rows."""
    type: RowType
    count: int | None = None
    rate: float | None = None
    kinds: frozenset[int] = ALL_KINDS
    supports_watermark_push_down = True
    filters_before_watermarks = True

    @property
    def produced_type(self) -> RowType:
        return self.type

    @property
    def is_bounded(self) -> bool:
        return self.count is not None

    def create_stream(self, context: ScanContext) -> DataStream[Any]:
        generator = NexmarkColumnGenerator(self.config, self.paths, self.type, self.kinds)
        strategy = context.watermark_strategy or WatermarkStrategy.no_watermarks()
        source = ColumnGeneratorSource(generator, self.count, self.rate)
        return context.environment.from_source(source, strategy, context.name)

    def with_projection(self, columns: Sequence[int]) -> NexmarkTableSource:
        return self._with([self.paths[column] for column in columns], [self.type.fields[column] for column in columns])

    def with_nested_projection(self, paths: Sequence[tuple[int, ...]], type: RowType) -> NexmarkTableSource:
        found = []
        for column, *fields in paths:
            path, part = self.paths[column], self.type.fields[column].type
            for field in fields:
                path, part = (*path, part.field_names[field]), part.children()[field]  # type: ignore[attr-defined]
            found.append(path)
        return self._with(found, type.fields)

    def _with(self, paths: Sequence[Path], fields: Sequence[Any]) -> NexmarkTableSource:
        return replace(self, paths=tuple(paths), type=RowType(list(fields), nullable=False))

    def with_filters(self, conditions: Sequence[Expression]) -> tuple[NexmarkTableSource, Sequence[Expression]] | None:
        kinds, rest = self.kinds, []
        for condition in conditions:
            inputs = {part.index for part in walk(condition) if isinstance(part, InputRef)}
            if {self.paths[index] for index in inputs} == {("event_type",)}:
                kinds = frozenset(kind for kind in kinds if self._holds(condition, kind))
            else:
                rest.append(condition)
        return None if kinds == self.kinds else (replace(self, kinds=kinds), rest)

    def _holds(self, condition: Expression, kind: int) -> bool:
        literal = Literal(type_of(("event_type",)), kind)
        return evaluate_constant(inlined(condition, [literal] * len(self.paths)), Session()) is True

    def as_summary_string(self) -> str:
        return "Nexmark Source"
