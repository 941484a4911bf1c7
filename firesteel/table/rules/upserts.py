"""Upserts at the borders of a plan: sources of them get a whole changelog, sinks of them rows by their primary key.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.connectors.in_memory import InMemorySource, batch_of
>>> from firesteel.types.logical import RowType
>>> row_type = RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.INT()], nullable=False)
>>> source = InMemorySource(row_type, batch_of([(1, 2)], row_type), mode=ChangelogMode.upsert())
>>> print(normalize_upserts(TableScan(ObjectIdentifier("c", "d", "t"), row_type, (), source, (0,))).explain())
ChangelogNormalize(key=[a])
  TableScan(table=[c.d.t])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from firesteel.common.types import RowKind
from firesteel.table.bound.errors import ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.changelogs import ChangelogNormalize, CompactingMaterialize, UpsertMaterialize
from firesteel.table.plan.nodes import Keys, LogicalNode, TableScan
from firesteel.table.plan.source_watermarks import SourceWatermark
from firesteel.table.plan.streaming import Sink, WatermarkAssigner
from firesteel.table.plan.traits import infer_traits

__all__ = ["materialize_upserts", "normalize_upserts"]


def normalize_upserts(node: LogicalNode) -> LogicalNode:
    """A scan of upserts as a changelog."""
    if not isinstance(node, TableScan) or node.source is None:
        return node
    kinds = node.source.changelog_mode.kinds
    if RowKind.UPDATE_BEFORE in kinds or RowKind.UPDATE_AFTER not in kinds:
        return node
    if not node.primary_key:
        raise ValidationError(
            f"Table '{node.identifier.as_summary_string()}' produces a changelog stream contains UPDATE_AFTER but no "
            "UPDATE_BEFORE, this requires defining primary key on the table."
        )
    return ChangelogNormalize(node, node.primary_key)


def materialize_upserts(root: LogicalNode, option: str, *, require_on_conflict: bool = False) -> LogicalNode:
    """A sink by whose primary key several rows of the query may be the same, with what keeps them apart.

    ``option`` is ``table.exec.sink.upsert-materialize``: AUTO, FORCE or NONE.
    """
    if not isinstance(root, Sink):
        return root
    traits = infer_traits([root.input])[root.input]
    accepted = root.sink.get_changelog_mode(ChangelogMode.of(traits.mode.kinds - {RowKind.UPDATE_BEFORE}))
    is_retract = RowKind.UPDATE_BEFORE in accepted.kinds
    if root.on_conflict is not None:
        _check_clause(root, accepted)
    if not root.primary_key or accepted.is_insert_only or is_retract or option == "NONE":
        return root
    if option == "AUTO":
        if traits.mode.is_insert_only and root.on_conflict == "DEDUPLICATE":
            return root  # each row replaces the one before
        if any(key <= set(root.primary_key) for key in traits.keys):
            return root
        if require_on_conflict and root.on_conflict is None:
            raise _clause_missing(root, traits.keys)
    if root.on_conflict in ("ERROR", "NOTHING"):
        upsert_key = min((tuple(sorted(key)) for key in traits.keys), key=lambda key: (len(key), key), default=())
        fails = root.on_conflict == "ERROR"
        return replace(root, input=CompactingMaterialize(root.input, root.primary_key, upsert_key, fails))
    return replace(root, input=UpsertMaterialize(root.input, root.primary_key))


def _check_clause(sink: Sink, accepted: ChangelogMode) -> None:
    if accepted.is_insert_only or RowKind.UPDATE_BEFORE in accepted.kinds:
        reason = (
            "it only accepts INSERT (append-only) changes"
            if accepted.is_insert_only
            else "it requires UPDATE_BEFORE (retract mode)"
        )
        raise ValidationError(
            f"ON CONFLICT clause is only allowed for upsert sinks. The sink '{_name(sink)}' is not an upsert sink "
            f"because {reason}.",
            position=sink.place,
        )
    if sink.on_conflict == "DEDUPLICATE":
        return
    tables = [scan.identifier.as_summary_string() for scan in _without_watermarks(sink.input)]
    if tables:
        raise ValidationError(
            f"ON CONFLICT DO {sink.on_conflict} requires all source tables to define watermarks, but the following "
            f"source(s) do not: {', '.join(tables)}. Please add a WATERMARK declaration to these tables.",
            position=sink.place,
        )


def _without_watermarks(node: LogicalNode) -> Iterator[TableScan]:
    if isinstance(node, TableScan):
        yield node
    elif not isinstance(node, (WatermarkAssigner, SourceWatermark)):
        for below in node.inputs():
            yield from _without_watermarks(below)


def _clause_missing(sink: Sink, keys: Keys) -> ValidationError:
    names = sink.row_type.field_names

    def text(key: Iterable[int]) -> str:
        return f"[{', '.join(names[index] for index in key)}]"

    upsert_keys = ", ".join(sorted(text(sorted(key)) for key in keys)) or "none"
    return ValidationError(
        "The query has an upsert key that differs from the primary key of the sink table "
        f"'{_name(sink)}'. Primary key: {text(sink.primary_key)}, upsert key: {upsert_keys}. This can lead to "
        "non-deterministic results when multiple records with different upsert keys map to the same primary key. "
        "Please specify an ON CONFLICT clause to define how conflicts should be handled: ON CONFLICT DO DEDUPLICATE "
        "(update to the latest record, state intensive, since we need to keep the entire history), or ON CONFLICT DO "
        "ERROR (fail on conflict), or ON CONFLICT DO NOTHING (keep first record).",
        position=sink.place,
        hint="Without table.exec.sink.require-on-conflict the last row of each primary key is kept.",
    )


def _name(sink: Sink) -> str:
    return "" if sink.identifier is None else sink.identifier.as_summary_string()
