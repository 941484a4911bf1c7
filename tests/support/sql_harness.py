"""Streaming queries step by step: rows and watermarks are pushed into tables, and results come at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.common.types import RowKind
from firesteel.config.configuration import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.runtime.operators.columns.operator import as_columns
from firesteel.table.binder.queries import QueryBinder
from firesteel.table.bound.session import Session
from firesteel.table.catalog import ObjectIdentifier
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.connectors.in_memory import batch_of
from firesteel.table.parser import parse_query
from firesteel.table.plan.nodes import LogicalNode, TableScan
from firesteel.table.rules.optimizer import optimize
from firesteel.table.rules.options import OptimizerOptions
from firesteel.table.translate.basic import rowtime_of
from firesteel.table.translate.catalogue import Translator
from firesteel.testing.clock import FakeClock
from firesteel.testing.operator_context import FAKE_RUNTIME, FakeOperatorContext
from firesteel.types.internal import from_column
from firesteel.types.logical import RowType

__all__ = ["Change", "HarnessTable", "QueryHarness"]

Change = tuple[str, tuple[Any, ...]]
"""The kind of a row, and its values as rows hold them inside of the engine."""
_KINDS = {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}
_NAMES = {kind.value: name for name, kind in _KINDS.items()}


class HarnessStream:
    """What an operator emits goes to the operators behind it at once."""

    _key_selector = None

    def __init__(self) -> None:
        self.readers: list[tuple[Callable[[Any, Any], None], Callable[[int], None]]] = []

    def push(self, batch: Any) -> None:
        for process, _ in self.readers:
            process(batch, None)

    def watermark(self, timestamp: int) -> None:
        for _, process in self.readers:
            process(timestamp)


class _Context(FakeOperatorContext):
    def __init__(self, stream: HarnessStream, clock: FakeClock):
        super().__init__(None, clock)
        self._stream = stream

    def emit(self, values: Any, timestamps: Any) -> None:
        self._stream.push(as_columns(values))

    def emit_watermark(self, timestamp: int) -> None:
        self._stream.watermark(timestamp)


@dataclass(frozen=True)
class HarnessTable(ScanTableSource):
    """A table into which a test pushes rows."""

    name: str
    type: RowType
    mode: ChangelogMode = ChangelogMode.insert_only()  # noqa: RUF009 - immutable
    primary_key: tuple[int, ...] = ()
    stream: HarnessStream = field(default_factory=HarnessStream, compare=False)
    bounded: bool = True
    belongs_to_program = True

    @property
    def produced_type(self) -> RowType:
        return self.type

    @property
    def is_bounded(self) -> bool:
        return self.bounded

    @property
    def changelog_mode(self) -> ChangelogMode:
        return self.mode

    def create_stream(self, context: ScanContext) -> Any:
        return self.stream

    def as_summary_string(self) -> str:
        return self.name

    def push(self, changes: Sequence[Change]) -> None:
        """Adds rows."""
        if changes:
            kinds = None if self.mode.is_insert_only else [_KINDS[kind] for kind, _ in changes]
            batch = batch_of([row for _, row in changes], self.type, kinds)
            self.stream.push(ColumnBatch(batch.data, batch.kinds, rowtime_of(self.type)))


class _HarnessTranslator(Translator):
    """Makes operators that run in the thread of the test."""

    def __init__(self, root: LogicalNode, configuration: Configuration, clock: FakeClock, session: Session | None):
        environment = StreamExecutionEnvironment.get_execution_environment()
        super().__init__(environment.set_parallelism(1), [root], configuration, session)
        self._clock = clock
        self.operators: list[Any] = []

    def keyed(self, stream: Any, columns: Sequence[int]) -> Any:
        return stream

    def apply(self, stream: Any, name: str, spec: Any, **_: Any) -> Any:
        operator, result = self._open(spec)
        stream.readers.append((operator.process_batch, operator.process_watermark))
        return result

    def connect(self, left: Any, right: Any, name: str, spec: Any, node: Any) -> Any:
        operator, result = self._open(spec)
        watermarks = [MIN_TIMESTAMP, MIN_TIMESTAMP]

        def advance(side: int, timestamp: int) -> None:
            before = min(watermarks)
            watermarks[side] = timestamp
            if min(watermarks) > before:
                operator.process_watermark(min(watermarks))

        left.readers.append((operator.process_batch, lambda timestamp: advance(0, timestamp)))
        right.readers.append((operator.process_second_batch, lambda timestamp: advance(1, timestamp)))
        return result

    def _open(self, spec: Any) -> tuple[Any, HarnessStream]:
        result = HarnessStream()
        operator = spec.create(FAKE_RUNTIME)
        operator.open(_Context(result, self._clock))
        self.operators.append(operator)
        return operator, result


class QueryHarness:
    """A query over tables; ``changes`` are its results since they were last taken."""

    def __init__(
        self,
        sql: str,
        tables: dict[str, HarnessTable],
        configuration: dict[str, str] | None = None,
        clock: FakeClock | None = None,
        session: Session | None = None,
    ):
        self._tables = {name: replace(table, stream=HarnessStream()) for name, table in tables.items()}
        settings = Configuration()
        for key, value in (configuration or {}).items():
            settings.set_string(key, value)
        self.plan = self._optimized(
            QueryBinder(self._resolve, sql, session).bind(parse_query(sql)), OptimizerOptions.of(settings)
        )
        self.clock = clock or FakeClock()
        translator = _HarnessTranslator(self.plan, settings, self.clock, session)
        self._operators = translator.operators
        self._types = [part.type for part in self.plan.row_type.fields]
        self._changes: list[Change] = []
        translator.translate(self.plan).readers.append((self._keep, lambda _: None))

    def _optimized(self, query: LogicalNode, options: OptimizerOptions) -> LogicalNode:
        return optimize(query, options)

    def _resolve(self, path: Sequence[str], options: tuple[tuple[str, str], ...]) -> LogicalNode:
        table = self._tables[path[-1]]
        return TableScan(ObjectIdentifier("c", "d", path[-1]), table.type, options, table, table.primary_key)

    def push(self, name: str, changes: Sequence[Change]) -> None:
        """Adds rows to a table."""
        self._tables[name].push(changes)

    def watermark(self, timestamp: int) -> None:
        """Advances the event time of all tables."""
        for table in self._tables.values():
            table.stream.watermark(timestamp)

    def close(self) -> None:
        """Ends the operators."""
        for operator in self._operators:
            operator.close()

    def _keep(self, batch: ColumnBatch, _: Any) -> None:
        columns = [from_column(batch.data.column(index), type_) for index, type_ in enumerate(self._types)]
        kinds = ["+I"] * len(batch) if batch.kinds is None else [_NAMES[kind] for kind in batch.kinds.tolist()]
        self._changes += zip(kinds, zip(*columns, strict=True), strict=True)

    def take(self) -> list[Change]:
        """The results since the last call."""
        taken, self._changes = self._changes, []
        return taken

    def late_rows(self) -> int:
        """How many rows were dropped as they were late."""
        return sum(operator.context.counter("numLateRecordsDropped").get_count() for operator in self._operators)
