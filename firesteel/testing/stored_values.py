"""Decodes a stored value of keyed state without changing it."""

from __future__ import annotations

import copy
from typing import Any

from firesteel.api.state import AggregatingStateDescriptor, StateDescriptor
from firesteel.api.state_ttl import StateTtlConfig

__all__ = ["visible_value"]


def visible_value(descriptor: StateDescriptor, stored: Any, now: int) -> Any:
    """A value, list or dict as reading the state would give it; the stored form is the same in all backends.

    >>> from firesteel.api.state import ListStateDescriptor
    >>> visible_value(ListStateDescriptor("numbers"), [1, 2], now=0)
    [1, 2]
    """
    stored = copy.deepcopy(stored)
    if descriptor.kind == "list":
        return [value for element in stored or () for value in _visible(descriptor.ttl_config, element, now)]
    if descriptor.kind == "map":
        entries = (stored or {}).items()
        return {key: value for key, entry in entries for value in _visible(descriptor.ttl_config, entry, now)}
    found = [] if stored is None else _visible(descriptor.ttl_config, stored, now)
    if not found:
        return None
    if isinstance(descriptor, AggregatingStateDescriptor):
        return descriptor.agg_function.get_result(found[0])
    return found[0]


def _visible(ttl: StateTtlConfig | None, stored: Any, now: int) -> list[Any]:
    """The value in a list, or an empty one if it has expired."""
    if ttl is None:
        return [stored]
    value, last_access = stored
    shows_expired = ttl.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
    return [value] if shows_expired or last_access + ttl.ttl_millis > now else []
