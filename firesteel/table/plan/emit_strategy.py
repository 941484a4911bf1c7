"""When group windows have results: also before they end, and again for late rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from firesteel.config.configuration import Configuration
from firesteel.config.table_options import (
    ALLOW_LATENESS,
    EARLY_FIRE_DELAY,
    EARLY_FIRE_ENABLED,
    IDLE_STATE_RETENTION,
    LATE_FIRE_DELAY,
    LATE_FIRE_ENABLED,
)
from firesteel.table.bound.errors import ValidationError
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.plan.time_attributes import is_proctime
from firesteel.table.plan.window_kinds import SessionWindow
from firesteel.table.plan.windows import EmitStrategy, WindowTableFunction

__all__ = ["with_emit_strategy"]


@dataclass(frozen=True)
class _Options:
    early_ms: int | None
    late_ms: int | None
    is_late: bool
    lateness_ms: int

    @staticmethod
    def of(configuration: Configuration) -> _Options | None:
        """The options ``table.exec.emit``; None if neither early nor late results are enabled."""
        is_early, is_late = configuration.get(EARLY_FIRE_ENABLED), configuration.get(LATE_FIRE_ENABLED)
        if not is_early and not is_late:
            return None
        early, late = configuration.get_optional(EARLY_FIRE_DELAY), configuration.get_optional(LATE_FIRE_DELAY)
        lateness = configuration.get_optional(ALLOW_LATENESS) or configuration.get(IDLE_STATE_RETENTION)
        if is_early and early is None:
            raise ValidationError(
                "Early-fire delay should not be null or negative value when enable early-fire emit strategy.",
                hint=f"Set '{EARLY_FIRE_DELAY.key}'.",
            )
        return _Options(
            early.to_millis() if is_early and early is not None else None,
            late.to_millis() if is_late and late is not None else None,
            is_late,
            lateness.to_millis() if is_late else 0,
        )

    def strategy(self, function: WindowTableFunction) -> EmitStrategy | None:
        """When a window has results; None for once at its end."""
        if isinstance(function.window, SessionWindow):
            raise ValidationError("Session window doesn't support EMIT strategy currently.")
        if is_proctime(function.time_type):
            return None if self.early_ms is None else EmitStrategy(self.early_ms)
        if self.is_late and not self.lateness_ms:
            raise ValidationError(
                "The 'AFTER WATERMARK' emit strategy requires set 'allow-lateness' or 'minIdleStateRetentionTime' in "
                "table config.",
                hint=f"Set '{ALLOW_LATENESS.key}'.",
            )
        if self.is_late and self.late_ms is None:
            raise ValidationError(
                "Late-fire delay should not be null or negative value when enable late-fire emit strategy.",
                hint=f"Set '{LATE_FIRE_DELAY.key}'.",
            )
        return EmitStrategy(self.early_ms, self.late_ms, self.lateness_ms)


def with_emit_strategy(plan: LogicalNode, configuration: Configuration) -> LogicalNode:
    """The plan whose windows have results when the options of the session say so."""
    options = _Options.of(configuration)
    return plan if options is None else _changed(plan, options)


def _changed(node: LogicalNode, options: _Options) -> LogicalNode:
    inputs = [_changed(below, options) for below in node.inputs()]
    if any(new is not old for new, old in zip(inputs, node.inputs(), strict=True)):
        node = node.with_inputs(inputs)
    if not isinstance(node, WindowTableFunction) or node.is_bounded:
        return node
    if not node.is_group_window:
        raise ValidationError(
            "Currently, window table function based aggregate doesn't support early-fire and late-fire configuration "
            f"'{EARLY_FIRE_ENABLED.key}' and '{LATE_FIRE_ENABLED.key}'.",
            hint="Write TUMBLE(...) or HOP(...) in GROUP BY, or reset the options.",
        )
    return replace(node, emit=options.strategy(node))
