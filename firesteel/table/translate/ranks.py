"""Streams of Top-N, deduplication and LIMIT."""

from __future__ import annotations

from typing import Any

from firesteel.table.plan.changelogs import ChangelogNormalize, CompactingMaterialize, UpsertMaterialize
from firesteel.table.plan.ranks import Rank
from firesteel.table.plan.replicate import ReplicateRows
from firesteel.table.plan.time_attributes import is_rowtime
from firesteel.table.runtime.operators.ranks.compacting import CompactingMaterializeSpec, WatermarkStampsSpec
from firesteel.table.runtime.operators.ranks.deduplicate import KeepFirstSpec, KeepLastSpec
from firesteel.table.runtime.operators.ranks.keep_first_by_time import EarliestRowSpec
from firesteel.table.runtime.operators.ranks.retractable import RetractableTopNSpec
from firesteel.table.runtime.operators.ranks.top_n import AppendOnlyTopNSpec
from firesteel.table.runtime.operators.ranks.updatable import UpdatableTopNSpec
from firesteel.table.runtime.operators.ranks.upserts import ChangelogNormalizeSpec, UpsertMaterializeSpec
from firesteel.table.runtime.operators.replicate import ReplicateRowsSpec
from firesteel.table.translate.basic import rowtime_of
from firesteel.table.translate.translator import Columns, Translator, translates

__all__: list[str] = []


@translates(Rank)
def rank(node: Rank, translator: Translator) -> Columns:
    """The operator that does least for the changelog of the input."""
    keyed = translator.keyed(translator.translate(node.input), node.partition)
    name = node.describe().split("(")[0]
    return translator.apply(keyed, name, _spec(node, translator), is_single=not node.partition, state_of=node)


def _spec(node: Rank, translator: Translator) -> Any:
    insert_only = translator.traits(node.input).mode.is_insert_only
    ttl_ms = translator.state_ttl_ms
    per_row = translator.keeps_changes(node)
    time, row_type = node.time_column, node.input.row_type
    by_rowtime = time is not None and is_rowtime(row_type.fields[time].type)
    update_before = translator.traits(node).emits_update_before
    rowtime = rowtime_of(node.row_type)
    if insert_only:
        if (not node.order or (time is not None and not by_rowtime and not node.order[0].descending)) and (
            node.number is None and node.end is not None
        ):
            return KeepFirstSpec(node.partition, node.end - node.start + 1, node.start - 1, ttl_ms)
        if node.is_first and not node.is_limit and time is not None:
            if node.order[0].descending:
                column = time if by_rowtime else None
                return KeepLastSpec(node.partition, row_type, column, update_before, per_row, rowtime, ttl_ms)
            return EarliestRowSpec(node.partition, row_type, time, rowtime, ttl_ms)
    arguments = (
        node.partition,
        row_type,
        node.row_type,
        node.order,
        node.start,
        node.end,
        node.end_column,
        update_before,
        per_row,
        rowtime,
        ttl_ms,
    )
    if insert_only:
        return AppendOnlyTopNSpec(*arguments)
    if node.update_key is not None:
        return UpdatableTopNSpec(*arguments, node.update_key)
    return RetractableTopNSpec(*arguments)


@translates(ReplicateRows)
def replicate_rows(node: ReplicateRows, translator: Translator) -> Columns:
    """Rows that are repeated."""
    return translator.apply(translator.translate(node.input), "ReplicateRows", ReplicateRowsSpec())


@translates(ChangelogNormalize)
def changelog_normalize(node: ChangelogNormalize, translator: Translator) -> Columns:
    """The last row of each key."""
    spec = ChangelogNormalizeSpec(
        node.key,
        node.row_type,
        translator.traits(node).emits_update_before,
        translator.keeps_changes(node),
        rowtime_of(node.row_type),
        translator.state_ttl_ms,
    )
    keyed = translator.keyed(translator.translate(node.input), node.key)
    return translator.apply(keyed, "ChangelogNormalize", spec, state_of=node)


@translates(UpsertMaterialize)
def upsert_materialize(node: UpsertMaterialize, translator: Translator) -> Columns:
    """The rows of each key."""
    spec = UpsertMaterializeSpec(node.key, node.row_type, rowtime_of(node.row_type), translator.state_ttl_ms)
    keyed = translator.keyed(translator.translate(node.input), node.key)
    return translator.apply(keyed, "UpsertMaterialize", spec, state_of=node)


@translates(CompactingMaterialize)
def compacting_materialize(node: CompactingMaterialize, translator: Translator) -> Columns:
    """The rows of each key that are left at a watermark. What a watermark is behind is stamped before the exchange."""
    spec = CompactingMaterializeSpec(
        node.key, node.upsert_key, node.fails, node.row_type, rowtime_of(node.row_type), translator.state_ttl_ms
    )
    stamped = translator.apply(translator.translate(node.input), "WatermarkTimestampAssigner", WatermarkStampsSpec())
    return translator.apply(translator.keyed(stamped, node.key), "UpsertMaterialize", spec, state_of=node)
