"""How tables are looked up: caches, and retries."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from firesteel.config.option_values import to_duration
from firesteel.table.bound.errors import ValidationError

__all__ = [
    "DEFAULT_LOOKUP",
    "FULL_CACHE_OPTIONS",
    "LOOKUP_CACHE_OPTIONS",
    "FullCacheOptions",
    "LookupCacheOptions",
    "LookupOptions",
]

LOOKUP_CACHE_OPTIONS = (
    "lookup.cache",
    "lookup.partial-cache.max-rows",
    "lookup.partial-cache.expire-after-access",
    "lookup.partial-cache.expire-after-write",
    "lookup.partial-cache.cache-missing-key",
)
"""The options of a connector whose tables can be looked up."""
FULL_CACHE_OPTIONS = (
    "lookup.full-cache.reload-strategy",
    "lookup.full-cache.periodic-reload.interval",
    "lookup.full-cache.periodic-reload.schedule-mode",
    "lookup.full-cache.timed-reload.iso-time",
    "lookup.full-cache.timed-reload.interval-in-days",
)
"""The options of ``lookup.cache`` = ``FULL``."""
_RETRY_OPTIONS = ("retry-predicate", "retry-strategy", "fixed-delay", "max-attempts")
_HINT_OPTIONS = ("table", "async", "output-mode", "capacity", "timeout", "time-out", "shuffle", *_RETRY_OPTIONS)


@dataclass(frozen=True)
class LookupCacheOptions:
    """A cache of the rows that were found."""

    max_rows: int | None = None
    expire_after_access_ms: int | None = None
    expire_after_write_ms: int | None = None
    caches_missing_keys: bool = True

    @staticmethod
    def of(options: Mapping[str, str]) -> LookupCacheOptions | None:
        """The cache that the options of a table describe; None for none."""
        kind = options.get("lookup.cache", "NONE").upper()
        if kind == "NONE":
            return None
        if kind != "PARTIAL":
            raise ValidationError(f"'lookup.cache' = '{kind}' is not supported.", hint="Use NONE or PARTIAL.")

        def millis(key: str) -> int | None:
            text = options.get(f"lookup.partial-cache.{key}")
            return None if text is None else to_duration(text).to_millis()

        rows = options.get("lookup.partial-cache.max-rows")
        return LookupCacheOptions(
            None if rows is None else int(rows),
            millis("expire-after-access"),
            millis("expire-after-write"),
            options.get("lookup.partial-cache.cache-missing-key", "true").lower() == "true",
        )


@dataclass(frozen=True)
class FullCacheOptions:
    """A cache of all rows, and when they are read again: after an interval, or at a time of day."""

    interval_ms: int | None = None
    is_fixed_rate: bool = False
    """Whether the interval is that between the beginnings of reloads, not from the end of one."""
    time: dt.time | None = None
    days: int = 1

    @staticmethod
    def of(options: Mapping[str, str]) -> FullCacheOptions:
        """The cache that the options of a table describe.

        >>> FullCacheOptions.of({"lookup.full-cache.periodic-reload.interval": "10 min"}).interval_ms
        600000
        """
        strategy = options.get("lookup.full-cache.reload-strategy", "PERIODIC").upper()
        if strategy == "PERIODIC":
            key = "lookup.full-cache.periodic-reload.interval"
            if key not in options:
                raise ValidationError(f"Missing '{key}' in PERIODIC reload strategy for FULL cache.")
            mode = options.get("lookup.full-cache.periodic-reload.schedule-mode", "FIXED_DELAY").upper()
            if mode not in ("FIXED_DELAY", "FIXED_RATE"):
                raise ValidationError(f"Invalid schedule mode '{mode}'.", hint="Use FIXED_DELAY or FIXED_RATE.")
            return FullCacheOptions(to_duration(options[key]).to_millis(), mode == "FIXED_RATE")
        if strategy != "TIMED":
            raise ValidationError(f"Invalid reload strategy '{strategy}'.", hint="Use PERIODIC or TIMED.")
        key = "lookup.full-cache.timed-reload.iso-time"
        if key not in options:
            raise ValidationError(f"Missing '{key}' in TIMED reload strategy for FULL cache.")
        days = int(options.get("lookup.full-cache.timed-reload.interval-in-days", "1"))
        if days < 1:
            raise ValidationError("Interval in days for TIMED reload must be at least 1.")
        try:
            time = dt.time.fromisoformat(options[key].replace("Z", "+00:00"))
        except ValueError as error:
            raise ValidationError(f"Invalid value for option '{key}'.\n\n{error}", hint="For example 10:15.") from None
        return FullCacheOptions(time=time, days=days)


@dataclass(frozen=True)
class LookupOptions:
    """How a join looks rows up, from a LOOKUP hint."""

    is_async: bool = False
    max_attempts: int = 1
    """How often a key without rows is looked up."""
    delay_ms: int = 0
    """Time between attempts."""
    timeout_ms: int | None = None
    """Time after which an asynchronous lookup fails; None for the option of the session."""
    capacity: int | None = None
    """Asynchronous lookups at the same time; None for the option of the session."""

    @staticmethod
    def of_hint(options: Mapping[str, str]) -> LookupOptions:
        """The options of a hint ``LOOKUP('table' = 't', …)``."""
        unknown = sorted(set(options) - set(_HINT_OPTIONS))
        if unknown:
            raise ValidationError(
                f"Invalid LOOKUP hint: unknown option '{unknown[0]}'.", hint=f"Options are {', '.join(_HINT_OPTIONS)}."
            )
        given = [key for key in _RETRY_OPTIONS if key in options]
        if given and len(given) != len(_RETRY_OPTIONS):
            raise ValidationError(
                "Invalid LOOKUP hint: retry options can be both null or all not null.",
                hint=f"Set {', '.join(_RETRY_OPTIONS)}.",
            )
        for key, only in (("retry-predicate", "lookup_miss"), ("retry-strategy", "fixed_delay")):
            if options.get(key, only).lower() != only:
                raise ValidationError(f"Invalid LOOKUP hint: '{key}' is {options[key]}, but only {only} is supported.")
        attempts = int(options.get("max-attempts", "0"))
        timeout = options.get("timeout", options.get("time-out"))
        mode, capacity = options.get("output-mode", "").lower(), options.get("capacity")
        if mode not in ("", "ordered", "allow_unordered"):
            raise ValidationError(
                f"Invalid LOOKUP hint: 'output-mode' is {mode}.", hint="Use ordered or allow_unordered."
            )
        if capacity is not None and (not capacity.isdigit() or int(capacity) < 1):
            raise ValidationError(f"Invalid LOOKUP hint: 'capacity' is {capacity}, but has to be at least 1.")
        return LookupOptions(
            options.get("async", "false").lower() == "true",
            1 + attempts,
            to_duration(options.get("fixed-delay", "0 ms")).to_millis(),
            None if timeout is None else to_duration(timeout).to_millis(),
            None if capacity is None else int(capacity),
        )


DEFAULT_LOOKUP = LookupOptions()
