"""Streams of aggregates without windows."""

from __future__ import annotations

from dataclasses import replace

from firesteel.config.table_options import AGG_PHASE_STRATEGY
from firesteel.runtime.operators.columns.calc import CalcSpec
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import InputRef
from firesteel.table.plan.nodes import Aggregate
from firesteel.table.plan.replicate import EXPAND_ID, Expand
from firesteel.table.runtime.operators.aggregate.expand import ExpandSpec
from firesteel.table.runtime.operators.aggregate.group_aggregate import GlobalGroupAggregateSpec, GroupAggregateSpec
from firesteel.table.runtime.operators.aggregate.local_aggregate import LocalGroupAggregateSpec
from firesteel.table.runtime.operators.calc import ProjectionFunction
from firesteel.table.translate.descriptions import describe_local, describe_operator
from firesteel.table.translate.translator import Columns, Translator, translates
from firesteel.types.logical import BigIntType, RowField, RowType

__all__ = ["aggregate", "expand", "has_local_phase"]


@translates(Aggregate)
def aggregate(node: Aggregate, translator: Translator) -> Columns:
    """A group aggregate, behind an Expand if there are grouping sets."""
    stream = translator.translate(node.input)
    spec = _spec(node, translator)
    if node.grouping_sets is None:
        return _grouped(stream, spec, node, translator)
    sets = _expand(node)
    expanded = _expanded_spec(node, spec, sets)
    grouped = _grouped(translator.apply(stream, "Expand", sets), expanded, node, translator)
    return _with_id_last(grouped, node, expanded, translator)


@translates(Expand)
def expand(node: Expand, translator: Translator) -> Columns:
    """Rows once per grouping set."""
    spec = ExpandSpec(node.grouping, node.grouping_sets, node.copies)
    return translator.apply(translator.translate(node.input), "Expand", spec)


def has_local_phase(node: Aggregate, translator: Translator) -> bool:
    """Whether rows are aggregated before they are exchanged too."""
    spec = _spec(node, translator)
    return _is_split(spec if node.grouping_sets is None else _expanded_spec(node, spec, _expand(node)), translator)


def _spec(node: Aggregate, translator: Translator) -> GroupAggregateSpec:
    below = translator.traits(node.input).mode
    return GroupAggregateSpec(
        node.input.row_type,
        node.grouping,
        node.calls,
        generate_update_before=translator.traits(node).emits_update_before,
        consumes_retractions=not below.is_insert_only,
        per_row=translator.is_per_row(node),
        ttl_ms=translator.state_ttl_ms if node.state_ttl_ms is None else node.state_ttl_ms,
        session=translator.session,
        has_row_for_none=node.has_row_for_none,
    )


def _grouped(stream: Columns, spec: GroupAggregateSpec, node: Aggregate, translator: Translator) -> Columns:
    # without grouping columns there is one key
    is_single = not spec.grouping
    if not _is_split(spec, translator):
        keyed = translator.keyed(stream, spec.key_columns)
        return translator.apply(keyed, "GroupAggregate", spec, is_single=is_single, state_of=node)
    local = LocalGroupAggregateSpec(spec.input_type, spec.grouping, spec.calls, spec.consumes_retractions, spec.session)
    merged = GlobalGroupAggregateSpec(
        **{name: getattr(spec, name) for name in spec.__dataclass_fields__}  # the same in all respects
    )
    partial = translator.apply(stream, "LocalGroupAggregate", local, description=describe_local(node))
    keyed = translator.keyed(partial, merged.key_columns)
    return translator.apply(
        keyed,
        "GlobalGroupAggregate",
        merged,
        is_single=is_single,
        state_of=node,
        description=f"Global{describe_operator(node)}",
    )


def _is_split(spec: GroupAggregateSpec, translator: Translator) -> bool:
    strategy = translator.configuration.get(AGG_PHASE_STRATEGY)
    # also refuses calls that cannot be computed, before anything runs
    is_splittable = spec.create_handler().is_splittable
    if strategy == "ONE_PHASE" or spec.per_row or not is_splittable:
        return False
    return strategy == "TWO_PHASE" or translator.environment.get_parallelism() > 1


# -- grouping sets -----------------------------------------------------------------------------------------


def _expand(node: Aggregate) -> ExpandSpec:
    assert node.grouping_sets is not None
    sets = [frozenset(group) for group in node.grouping_sets]
    if len(set(sets)) < len(sets):
        raise ValidationError(
            "GROUPING SETS with the same set twice are not supported in streaming queries yet.",
            hint="Remove the second one, or use UNION ALL.",
        )
    read = {column for call in node.calls for column in call.arguments}
    read |= {call.filter for call in node.calls if call.filter is not None}
    return ExpandSpec(node.grouping, node.grouping_sets, tuple(sorted(read & set(node.grouping))))


def _expanded_spec(node: Aggregate, spec: GroupAggregateSpec, expand: ExpandSpec) -> GroupAggregateSpec:
    """The aggregate over what Expand emits: by the id of the set too, and with the copies as arguments."""
    fields = list(node.input.row_type.fields)
    for index in node.grouping:
        fields[index] = RowField(fields[index].name, fields[index].type.copy(True))
    width = len(fields)
    fields += [RowField(f"${index}", node.input.row_type.fields[index].type) for index in expand.copies]
    fields.append(RowField(EXPAND_ID, BigIntType(nullable=False)))
    copies = {index: width + place for place, index in enumerate(expand.copies)}
    calls = tuple(
        replace(
            call,
            arguments=tuple(copies.get(index, index) for index in call.arguments),
            filter=None if call.filter is None else copies.get(call.filter, call.filter),
        )
        for call in node.calls
    )
    input_type = RowType(fields, nullable=False)
    return replace(spec, input_type=input_type, grouping=(*node.grouping, len(fields) - 1), calls=calls)


def _with_id_last(stream: Columns, node: Aggregate, spec: GroupAggregateSpec, translator: Translator) -> Columns:
    produced = spec.output_type()
    at = len(node.grouping)
    order = [*range(at), *range(at + 1, len(produced.fields)), at]
    references = [InputRef(produced.fields[index].type, index, produced.fields[index].name) for index in order]
    calc = CalcSpec(ProjectionFunction(references, node.row_type, translator.session))
    return translator.apply(stream, "Calc", calc)
