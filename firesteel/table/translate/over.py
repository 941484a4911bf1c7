"""Streams of OVER and of sorts by time."""

from __future__ import annotations

from firesteel.table.bound.errors import ValidationError
from firesteel.table.plan.over import BoundedOver, BoundKind, Over
from firesteel.table.plan.ranks import TemporalSort
from firesteel.table.plan.time_attributes import is_proctime, is_rowtime
from firesteel.table.runtime.operators.over.bounded import BoundedOverSpec
from firesteel.table.runtime.operators.over.proctime import ProctimeOverSpec
from firesteel.table.runtime.operators.over.rowtime import RowtimeOverSpec
from firesteel.table.runtime.operators.over.sorted import SortedOverSpec
from firesteel.table.runtime.operators.over.spec import OverSpec
from firesteel.table.runtime.operators.over.temporal_sort import TemporalSortSpec
from firesteel.table.translate.basic import rowtime_of
from firesteel.table.translate.translator import Columns, Translator, translates

__all__: list[str] = []


@translates(Over)
def over(node: Over, translator: Translator) -> Columns:
    """Calls over one window."""
    group = node.groups[0]
    try:
        _check(node)
    except ValidationError as error:
        raise error.at(group.position) from None
    type_ = node.input.row_type.fields[group.order[0].index].type
    make: type[OverSpec] = ProctimeOverSpec if is_proctime(type_) else SortedOverSpec
    make = RowtimeOverSpec if is_rowtime(type_) else make
    row_type = node.input.row_type
    rowtime = rowtime_of(node.row_type)
    ttl_ms = translator.state_ttl_ms
    spec = make(group, row_type, node.row_type, rowtime, ttl_ms, translator.session, translator.is_per_row(node))
    try:
        spec.calls()
    except ValidationError as error:
        raise error.at(group.position) from None
    keyed = translator.keyed(translator.translate(node.input), group.partition)
    return translator.apply(keyed, "OverAggregate", spec, is_single=not group.partition, state_of=node)


def _check(node: Over) -> None:
    """Raises ValidationError for windows that streams do not have."""
    group = node.groups[0]
    if len(node.groups) > 1:
        raise ValidationError(
            "Over Agg: Unsupported use of OVER windows. All aggregates must be computed on the same window. please "
            "re-check the over window statement."
        )
    if len(group.order) != 1:
        raise ValidationError("The window can only be ordered by a single time column.")
    if group.order[0].descending:
        raise ValidationError(
            "The window can only be ordered in ASCENDING mode.",
            hint="For the first rows of each partition, compare ROW_NUMBER() with a constant in WHERE or QUALIFY.",
        )
    if group.frame.upper.kind is not BoundKind.CURRENT_ROW:
        raise ValidationError("OVER RANGE FOLLOWING windows are not supported yet.")
    if not node.is_by_time and group.frame.lower.kind is not BoundKind.UNBOUNDED_PRECEDING:
        raise ValidationError(
            "Non-time attribute sort is not supported for bounded OVER window.",
            hint="Begin the frame with UNBOUNDED PRECEDING, or order by a time attribute.",
        )


@translates(BoundedOver)
def bounded_over(node: BoundedOver, translator: Translator) -> Columns:
    """Calls over one window of a bounded query."""
    group = node.group
    spec = BoundedOverSpec(group, node.input.row_type, node.row_type, rowtime_of(node.row_type), translator.session)
    try:
        spec.calls()
    except ValidationError as error:
        raise error.at(group.position) from None
    keyed = translator.keyed(translator.translate(node.input), group.partition)
    return translator.apply(keyed, "BoundedOverAggregate", spec, is_single=not group.partition)


@translates(TemporalSort)
def temporal_sort(node: TemporalSort, translator: Translator) -> Columns:
    """All rows in one subtask."""
    type_ = node.row_type.fields[node.order[0].index].type
    spec = TemporalSortSpec(node.row_type, node.order, is_rowtime(type_), rowtime_of(node.row_type))
    keyed = translator.keyed(translator.translate(node.input), ())
    return translator.apply(keyed, "TemporalSort", spec, is_single=True, state_of=node)
