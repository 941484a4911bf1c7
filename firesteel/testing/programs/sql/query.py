"""The node of a query: streams become tables, and what is left of its changelog becomes a stream again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from firesteel.testing.programs.oracle.flow import MAX_TIME, Flow, Mode
from firesteel.testing.programs.program import EventTime, Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import SHAPES
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.sql.drawing import draw_relation
from firesteel.testing.programs.sql.expressions import STAMP, TIME
from firesteel.testing.programs.sql.relations import Relation, Scan, Views
from firesteel.testing.programs.sql.tables import (
    FinalRows,
    TableOf,
    ToRows,
    WholeRow,
    final_rows,
    query_stream,
    record_of,
    rows_of,
)

__all__ = ["Query"]

_MAX_VOLUME = 400
_OPTIONS = (
    ("table.exec.mini-batch.enabled", ("true", "false")),
    ("table.optimizer.agg-phase-strategy", ("AUTO", "ONE_PHASE", "TWO_PHASE")),
    ("table.optimizer.distinct-agg.split.enabled", ("true",)),
    ("table.optimizer.distinct-agg.split.bucket-num", ("1", "3", "1024")),
)


@dataclass(frozen=True, kw_only=True)
class Query(Node):
    """A query over one or two streams. Only the rows at the end are the same in every run."""

    weight: ClassVar[float] = 3.0

    tables: tuple[TableOf, ...]
    relation: Relation
    shape: str = "tuple"
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws tables and a query over them."""
        rng = sketch.rng
        refs = [sketch.pick(lambda kind: kind.settled and 0 < kind.volume <= _MAX_VOLUME) for _ in range(2)]
        inputs = tuple(dict.fromkeys(ref for ref in refs if ref is not None))
        if not inputs:
            return None
        tables, scans = [], []
        for number, ref in enumerate(inputs):
            kind = sketch.types[ref].at(None)
            form = rng.choices(("append", "changes", "upsert" if kind.ordered else "changes"), (7, 2, 2))[0]
            is_timed = form == "append" and kind.time is EventTime.SAFE and not kind.idle
            table = TableOf(f"t{number}", form, is_timed)
            tables.append(table)
            scans.append(Scan(table.name, table.columns, form != "append", kind.volume))
        return cls(
            id=sketch.next_id,
            inputs=inputs,
            chain=sketch.draw_chain(),
            tables=tuple(tables),
            relation=draw_relation(rng, scans),
            shape=rng.choice(SHAPES),
            options=tuple((key, rng.choice(values)) for key, values in _OPTIONS if rng.random() < 0.4),
        )

    @property
    def kind(self) -> str:
        """Counted by the last operation of the query."""
        return f"Query[{type(self.relation).__name__}]"

    @property
    def functions(self) -> tuple[str, ...]:
        """What makes rows of the first stream, and what counts rows, with its key selector."""
        return ("", "rows", "key")

    def smaller(self) -> Iterator[Node]:
        """Yields queries with one operation less."""
        for field in fields(self.relation):
            content = getattr(self.relation, field.name)
            if isinstance(content, Relation):
                yield replace(self, relation=content)

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Rows come at the end of event time, in any order."""
        for source, table in zip(inputs, self.tables, strict=True):
            kind = source.at(None)
            if not kind.settled or kind.volume > _MAX_VOLUME:
                raise Misfit("rows that differ from run to run, or too many")
            if table.is_timed and (kind.time is not EventTime.SAFE or kind.idle):
                raise Misfit("rows may be late or not")
            if table.form == "upsert" and not kind.ordered:
                raise Misfit("the last row of a key depends on timing")
        volume = min(self.relation.size, 100 * _MAX_VOLUME)
        width = self.parallelism
        return {"": StreamType(self.shape, width=width, volume=volume, batchable=False, batch_times=False)}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Turns records into rows, runs the query, and counts the rows of its result."""
        streams = []
        for number, (stream, table) in enumerate(zip(inputs, self.tables, strict=True)):
            function = ToRows(table.form)
            armed = site.arm(self, function) if number == 0 else function
            streams.append(site.hold(site.call(rows_of, stream, armed, f"node-{self.id}-table-{number}")))
        views, text = self.text()
        arguments = (site.env, tuple(streams), self.tables, views, text, self.options)
        changes = site.call(query_stream, *arguments)
        keyed = changes.key_by(site.arm(self, WholeRow(), "key"))
        return site.finish(keyed.process(site.arm(self, FinalRows(self.shape), "rows")), self)

    def text(self) -> tuple[tuple[tuple[str, str], ...], str]:
        """The views, and the query with times that are no attributes."""
        views = Views()
        inner = self.relation.sql(views)
        items = [
            f"CAST({column.name} AS TIMESTAMP(3)) AS {column.name}" if column.type in (TIME, STAMP) else column.name
            for column in self.relation.columns
        ]
        return tuple(views.statements), f"SELECT {', '.join(items)} FROM ({inner})"

    def interpret(self, inputs: Sequence[Flow], mode: Mode) -> Mapping[str, Flow]:
        """Evaluates the query over all records."""
        flow = Flow()
        watermark = min(source.watermark for source in inputs)
        if watermark == MAX_TIME:
            tables = {
                table.name: final_rows(table, [(record.value, record.time) for record in source.records()])
                for table, source in zip(self.tables, inputs, strict=True)
            }
            for row, count in Counter(map(repr, map(list, self.relation.rows(tables)))).items():
                flow.emit(record_of(self.shape, row, count), None)
        flow.mark(watermark)
        return {"": flow}
