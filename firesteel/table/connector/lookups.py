"""How tables are looked up: caches, and retries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firesteel.config.option_values import to_duration
from firesteel.table.expressions.errors import ValidationError

__all__ = ["DEFAULT_LOOKUP", "LOOKUP_CACHE_OPTIONS", "LookupCacheOptions", "LookupOptions"]

LOOKUP_CACHE_OPTIONS = (
    "lookup.cache",
    "lookup.partial-cache.max-rows",
    "lookup.partial-cache.expire-after-access",
    "lookup.partial-cache.expire-after-write",
    "lookup.partial-cache.cache-missing-key",
)
"""The options of a connector whose tables can be looked up."""
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
class LookupOptions:
    """How a join looks rows up, from a LOOKUP hint."""

    is_async: bool = False
    max_attempts: int = 1
    """How often a key without rows is looked up."""
    delay_ms: int = 0
    """Time between attempts."""
    timeout_ms: int = 180_000
    """Time after which an asynchronous lookup fails."""

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
        timeout = options.get("timeout", options.get("time-out", "180 s"))
        return LookupOptions(
            options.get("async", "false").lower() == "true",
            1 + attempts,
            to_duration(options.get("fixed-delay", "0 ms")).to_millis(),
            to_duration(timeout).to_millis(),
        )


DEFAULT_LOOKUP = LookupOptions()
