"""Streams of joins by key."""

from __future__ import annotations

import warnings
from dataclasses import replace

from firesteel.common.errors import FiresteelWarning
from firesteel.config.table_options import ASYNC_LOOKUP_BUFFER_CAPACITY, ASYNC_LOOKUP_TIMEOUT
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.lookups import LookupOptions
from firesteel.table.connector.source import LookupTableSource, ScanTableSource
from firesteel.table.plan.joins import StreamingJoin
from firesteel.table.plan.lookup_joins import LookupJoin
from firesteel.table.plan.nodes import JoinKind, LogicalNode, TableScan, walk
from firesteel.table.plan.time_joins import IntervalJoin, TemporalJoin
from firesteel.table.runtime.operators.joins.interval import SqlIntervalJoinSpec
from firesteel.table.runtime.operators.joins.lookup import LookupJoinSpec
from firesteel.table.runtime.operators.joins.regular import RegularJoinSpec
from firesteel.table.runtime.operators.joins.sides import JoinSide
from firesteel.table.runtime.operators.joins.temporal import TemporalJoinSpec
from firesteel.table.translate.basic import rowtime_of
from firesteel.table.translate.translator import Columns, Translator, translates
from firesteel.types.logical import RowType

__all__ = ["interval_join", "lookup_join", "streaming_join", "temporal_join"]


@translates(StreamingJoin)
def streaming_join(node: StreamingJoin, translator: Translator) -> Columns:
    """A regular join."""
    sides = [_side(node, index, translator) for index in (0, 1)]
    spec = RegularJoinSpec(
        sides[0],
        sides[1],
        node.kind,
        node.null_safe,
        node.condition,
        node.row_type,
        translator.session,
        translator.keeps_changes(node),
    )
    return _by_keys(node, translator, "Join", spec)


def _side(node: StreamingJoin, index: int, translator: Translator) -> JoinSide:
    below, keys = ((node.left, node.left_keys), (node.right, node.right_keys))[index]
    mode: ChangelogMode = translator.traits(below).mode
    hint = (node.left_ttl_ms, node.right_ttl_ms)[index]
    ttl_ms = translator.state_ttl_ms if hint is None else hint
    if not ttl_ms and mode.is_insert_only and _is_unbounded(below):
        warnings.warn(
            f"The state of {node.describe()} grows for ever: it keeps all rows of its {('left', 'right')[index]} side. "
            "Set 'table.exec.state.ttl', or a STATE_TTL hint, if older rows need not be joined.",
            FiresteelWarning,
            stacklevel=2,
        )
    return JoinSide(below.row_type, keys, _unique_key(node, index), ttl_ms, mode.is_insert_only)


def _is_unbounded(node: LogicalNode) -> bool:
    sources = (below.source for below in walk(node) if isinstance(below, TableScan))
    return any(isinstance(source, ScanTableSource) and not source.is_bounded for source in sources)


def _unique_key(node: StreamingJoin, index: int) -> tuple[int, ...] | None:
    """The columns of the smallest key which are not keys of the join; None if there is no key."""
    keys = node.unique_keys(index)
    if not keys:
        return None
    smallest = min(keys, key=lambda key: (len(key), sorted(key)))
    return tuple(sorted(smallest - set((node.left_keys, node.right_keys)[index])))


@translates(IntervalJoin)
def interval_join(node: IntervalJoin, translator: Translator) -> Columns:
    """A join by key and time."""
    spec = SqlIntervalJoinSpec(
        node.left.row_type,
        node.right.row_type,
        (node.left_keys, node.right_keys),
        node.null_safe,
        (node.left_time, node.right_time),
        node.lower_ms,
        node.upper_ms,
        node.is_event_time,
        node.kind,
        node.condition,
        node.row_type,
        rowtime_of(node.row_type),
        translator.session,
    )
    return _by_keys(node, translator, "IntervalJoin", spec)


@translates(TemporalJoin)
def temporal_join(node: TemporalJoin, translator: Translator) -> Columns:
    """A join with the versions of a table."""
    spec = TemporalJoinSpec(
        node.left.row_type,
        node.right.row_type,
        (node.left_keys, node.right_keys),
        (node.left_time, node.right_time),
        node.kind is JoinKind.LEFT,
        node.condition,
        node.row_type,
        rowtime_of(node.row_type),
        translator.session,
        translator.state_ttl_ms,
    )
    return _by_keys(node, translator, "TemporalJoin", spec)


def _completed(node: LookupJoin, translator: Translator) -> LookupOptions:
    """The options of a lookup, with those of the session where its hint has none."""
    options, configuration = node.options, translator.configuration
    return replace(
        options,
        timeout_ms=options.timeout_ms or configuration.get(ASYNC_LOOKUP_TIMEOUT).to_millis(),
        capacity=options.capacity or configuration.get(ASYNC_LOOKUP_BUFFER_CAPACITY),
    )


@translates(LookupJoin)
def lookup_join(node: LookupJoin, translator: Translator) -> Columns:
    """A join with rows that are looked up."""
    source: object = node.scan.source
    assert isinstance(source, LookupTableSource)
    types = [expression.type for expression in node.projection]
    spec = LookupJoinSpec(
        source.create_lookup([column for column, _ in node.keys]),
        tuple(value for _, value in node.keys),
        node.input.row_type,
        RowType.of(node.names, types, nullable=False),
        node.projection,
        node.filter,
        node.condition,
        node.kind is JoinKind.LEFT,
        node.row_type,
        rowtime_of(node.row_type),
        _completed(node, translator),
        source.lookup_cache,
        translator.session,
        tuple(column for column, _ in node.keys),
    )
    return translator.apply(translator.translate(node.input), "LookupJoin", spec)


def _by_keys(
    node: StreamingJoin | IntervalJoin | TemporalJoin, translator: Translator, name: str, spec: OperatorSpec
) -> Columns:
    """The stream of an operator over both sides by their keys."""
    left = translator.keyed(translator.translate(node.left), node.left_keys)
    right = translator.keyed(translator.translate(node.right), node.right_keys)
    return translator.connect(left, right, name, spec, node)
