"""How the watermarks of a table are emitted: options that tables of all connectors may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firesteel.common.time import Duration, to_millis
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config.option import ConfigOption, ConfigOptions
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.options import option_of

__all__ = ["WATERMARK_OPTIONS", "WatermarkParams", "watermark_params"]

_key = ConfigOptions.key

EMIT_STRATEGY = _key("scan.watermark.emit.strategy").choice_type("on-event", "on-periodic").default_value("on-periodic")
IDLE_TIMEOUT: ConfigOption[Duration | None] = _key("scan.watermark.idle-timeout").duration_type().no_default_value()
ALIGNMENT_GROUP: ConfigOption[str | None] = _key("scan.watermark.alignment.group").string_type().no_default_value()
ALIGNMENT_MAX_DRIFT: ConfigOption[Duration | None] = (
    _key("scan.watermark.alignment.max-drift").duration_type().no_default_value()
)
ALIGNMENT_UPDATE_INTERVAL = (
    _key("scan.watermark.alignment.update-interval").duration_type().default_value(Duration.of_seconds(1))
)
WATERMARK_OPTIONS = frozenset(
    option.key
    for option in (EMIT_STRATEGY, IDLE_TIMEOUT, ALIGNMENT_GROUP, ALIGNMENT_MAX_DRIFT, ALIGNMENT_UPDATE_INTERVAL)
)
"""Connectors do not see them."""


@dataclass(frozen=True)
class WatermarkParams:
    """What the options of a table say."""

    on_event: bool = False
    """Whether each row emits its watermark, in sources that emit watermarks themselves."""
    idle_timeout_ms: int | None = None
    """None: ``table.exec.source.idle-timeout`` holds. 0: never idle."""
    alignment: tuple[str, int, int] | None = None
    """Group, drift and update interval in milliseconds, of sources that emit watermarks themselves."""

    def apply(self, strategy: WatermarkStrategy, default_idle_timeout_ms: int, is_source: bool) -> WatermarkStrategy:
        """The strategy of the source, or of the operator behind it."""
        idle = default_idle_timeout_ms if self.idle_timeout_ms is None else self.idle_timeout_ms
        if idle:
            strategy = strategy.with_idleness(Duration.of_millis(idle))
        if self.alignment is not None and is_source:
            group, drift, interval = self.alignment
            strategy = strategy.with_watermark_alignment(group, Duration.of_millis(drift), Duration.of_millis(interval))
        return strategy


def watermark_params(options: Mapping[str, str]) -> WatermarkParams:
    """What the options of a table say; options that do not fit together are refused.

    >>> watermark_params({"scan.watermark.idle-timeout": "1 min"}).idle_timeout_ms
    60000
    """
    idle = option_of(options, IDLE_TIMEOUT)
    group, drift = option_of(options, ALIGNMENT_GROUP), option_of(options, ALIGNMENT_MAX_DRIFT)
    interval = to_millis(option_of(options, ALIGNMENT_UPDATE_INTERVAL))
    if (group is None) != (drift is None):
        raise ValidationError(
            f"'{ALIGNMENT_GROUP.key}' and '{ALIGNMENT_MAX_DRIFT.key}' must be set together for watermark alignment."
        )
    if interval <= 0:
        raise ValidationError(f"'{ALIGNMENT_UPDATE_INTERVAL.key}' must be greater than zero.")
    alignment = None if group is None or drift is None else (group, to_millis(drift), interval)
    return WatermarkParams(
        option_of(options, EMIT_STRATEGY) == "on-event", None if idle is None else to_millis(idle), alignment
    )
