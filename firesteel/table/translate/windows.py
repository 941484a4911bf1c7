"""Streams of window functions and window aggregations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from firesteel.config.table_options import AGG_PHASE_STRATEGY
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.table.plan.joins import TRUE
from firesteel.table.plan.nodes import Join, JoinKind
from firesteel.table.plan.window_kinds import AlignedWindow, SessionWindow
from firesteel.table.plan.windows import EmitStrategy, WindowAggregate, WindowJoin, WindowRank, WindowTableFunction
from firesteel.table.runtime.operators.windows.aggregate import WindowAggregateSpec
from firesteel.table.runtime.operators.windows.emitting import EmittingWindowAggregateSpec
from firesteel.table.runtime.operators.windows.join import WindowJoinSide, WindowJoinSpec
from firesteel.table.runtime.operators.windows.local_aggregate import (
    GlobalWindowAggregateSpec,
    LocalWindowAggregateSpec,
)
from firesteel.table.runtime.operators.windows.rank import WindowRankSpec
from firesteel.table.runtime.operators.windows.session_operator import SessionAggregateSpec, SessionTableFunctionSpec
from firesteel.table.runtime.operators.windows.table_function import WindowTableFunctionSpec
from firesteel.table.translate.basic import rowtime_of
from firesteel.table.translate.descriptions import describe_local, describe_operator
from firesteel.table.translate.translator import Columns, Translator, translates

__all__: list[str] = []


@translates(WindowTableFunction)
def table_function(node: WindowTableFunction, translator: Translator) -> Columns:
    """Rows with their windows."""
    if isinstance(node.window, SessionWindow):
        return _sessions(node, translator, node.partition, node.time, SessionTableFunctionSpec)
    assert isinstance(node.window, AlignedWindow)
    spec = WindowTableFunctionSpec(
        node.window,
        node.row_type,
        node.time_type,
        None if node.is_proctime else node.time,
        translator.session.local_time_zone,
        rowtime_of(node.row_type),
    )
    return translator.apply(translator.translate(node.input), "WindowTableFunction", spec)


@translates(WindowAggregate)
def aggregate(node: WindowAggregate, translator: Translator) -> Columns:
    """Results of windows."""
    retracts = not translator.traits(node.input).mode.is_insert_only
    if isinstance(node.window, SessionWindow):
        assert node.time is not None
        create = partial(SessionAggregateSpec, grouping=node.grouping, calls=node.calls, retracts=retracts)
        return _sessions(node, translator, node.keys, node.time, create)
    assert isinstance(node.window, AlignedWindow)
    if node.emit is not None:
        return _emitting(node, node.window, node.emit, retracts, translator)
    spec = _spec(node, node.window, retracts, translator)
    stream = translator.translate(node.input)
    if not _is_split(spec, translator):
        return translator.apply(translator.keyed(stream, spec.keys), "WindowAggregate", spec, state_of=node)
    merged = GlobalWindowAggregateSpec(**{name: getattr(spec, name) for name in spec.__dataclass_fields__})
    local_spec = LocalWindowAggregateSpec(spec)
    local = translator.apply(stream, "LocalWindowAggregate", local_spec, description=describe_local(node))
    keyed = translator.keyed(local, range(len(spec.keys)))
    description = f"Global{describe_operator(node)}"
    return translator.apply(keyed, "GlobalWindowAggregate", merged, state_of=node, description=description)


def has_local_phase(node: WindowAggregate, translator: Translator) -> bool:
    """Whether rows are aggregated before they are exchanged too."""
    retracts = not translator.traits(node.input).mode.is_insert_only
    if not isinstance(node.window, AlignedWindow) or node.emit is not None:
        return False
    return _is_split(_spec(node, node.window, retracts, translator), translator)


def _spec(node: WindowAggregate, window: AlignedWindow, retracts: bool, translator: Translator) -> WindowAggregateSpec:
    return WindowAggregateSpec(
        window,
        node.input.row_type,
        node.row_type,
        node.time_type,
        node.grouping,
        node.calls,
        node.time,
        node.end,
        retracts,
        translator.session,
        rowtime_of(node.row_type),
    )


def _is_split(spec: WindowAggregateSpec, translator: Translator) -> bool:
    strategy = translator.configuration.get(AGG_PHASE_STRATEGY)
    if strategy == "ONE_PHASE" or spec.end is not None or spec.is_proctime or not spec.create_handler().is_splittable:
        return False
    return strategy == "TWO_PHASE" or translator.environment.get_parallelism() > 1


def _emitting(
    node: WindowAggregate, window: AlignedWindow, emit: EmitStrategy, retracts: bool, translator: Translator
) -> Columns:
    """Results of windows that change."""
    assert node.time is not None
    spec = EmittingWindowAggregateSpec(
        window,
        emit,
        node.input.row_type,
        node.row_type,
        node.time_type,
        node.grouping,
        node.calls,
        node.time,
        retracts,
        translator.traits(node).emits_update_before,
        translator.is_per_row(node),
        translator.session,
        rowtime_of(node.row_type),
    )
    stream = translator.keyed(translator.translate(node.input), spec.keys)
    return translator.apply(stream, "GroupWindowAggregate", spec, is_single=not spec.keys, state_of=node)


def _sessions(
    node: WindowTableFunction | WindowAggregate,
    translator: Translator,
    keys: tuple[int, ...],
    time: int,
    create: Callable[..., OperatorSpec],
) -> Columns:
    assert isinstance(node.window, SessionWindow)
    spec = create(
        gap=node.window.gap,
        input_type=node.input.row_type,
        row_type=node.row_type,
        time_type=node.time_type,
        keys=keys,
        time=time,
        session=translator.session,
        rowtime=rowtime_of(node.row_type),
    )
    stream = translator.keyed(translator.translate(node.input), keys)
    return translator.apply(stream, type(node).__name__, spec, state_of=node)


@translates(WindowJoin)
def join(node: WindowJoin, translator: Translator) -> Columns:
    """Pairs of rows of windows."""
    assert node.time_type is not None
    spec = WindowJoinSpec(
        (
            WindowJoinSide(node.left.row_type, node.left_keys, node.left_bounds[1]),
            WindowJoinSide(node.right.row_type, node.right_keys, node.right_bounds[1]),
        ),
        node.kind,
        node.null_safe,
        node.condition,
        Join(node.left, node.right, JoinKind.FULL, TRUE).row_type,
        node.row_type,
        node.time_type,
        translator.session,
        rowtime_of(node.row_type),
    )
    left = translator.keyed(translator.translate(node.left), node.left_keys)
    right = translator.keyed(translator.translate(node.right), node.right_keys)
    return translator.connect(left, right, "WindowJoin", spec, node)


@translates(WindowRank)
def rank(node: WindowRank, translator: Translator) -> Columns:
    """The first rows of windows."""
    spec = WindowRankSpec(
        node.input.row_type,
        node.row_type,
        node.time_type,
        node.bounds[1],
        node.partition,
        node.order,
        node.first,
        node.last,
        node.number is not None,
        node.keeps_last,
        translator.session.local_time_zone,
        rowtime_of(node.row_type),
    )
    stream = translator.keyed(translator.translate(node.input), node.partition)
    return translator.apply(stream, "WindowRank", spec, state_of=node)
