"""Migration of state with an earlier key encoding: some keys change their key group, and some become equal.

A key that has moved within the key groups of its subtask is taken along. One that has moved out of them would be
lost: then the state is refused. With parallelism 1 no key can move that far. Two keys that were kept apart although
they are equal can no longer be distinguished: their state is refused as well.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

from firesteel.common.errors import StateIncompatibleError
from firesteel.runtime.model.key_groups import KEY_ENCODING, KeyGroupRange
from firesteel.runtime.model.state_handles import KeyedStateHandle
from firesteel.runtime.state.api.chunks import is_timer_table, key_groups_of

__all__ = ["check_groups", "has_moved_keys", "moved_out", "two_states"]


def has_moved_keys(handle: KeyedStateHandle) -> bool:
    """Whether keys of the handle may belong to other key groups than those they are stored in."""
    return handle.key_encoding != KEY_ENCODING


def check_groups(
    table: str, keys: Iterable[Any], max_parallelism: int, own: KeyGroupRange, others: KeyGroupRange
) -> None:
    """Refuses keys that are neither of the subtask's own key groups nor of those that others read."""
    keys = list(keys)
    for key, group in zip(keys, key_groups_of(table, keys, max_parallelism), strict=True):
        if group not in own and group not in others:
            raise moved_out(table, key[1] if is_timer_table(table) else key)


def moved_out(table: str, key: Any) -> StateIncompatibleError:
    """The error for a key that belongs to another subtask."""
    return StateIncompatibleError(
        f"State '{table}' was written by an earlier version, to which the key {reprlib.repr(key)} belonged to this "
        "subtask. Since rows are one key in any order of their fields, and times in any zone, it belongs to another.",
        state=table,
        hint="Restore the job once with parallelism 1 and take a savepoint: from that savepoint it can be restored "
        "with any parallelism.",
    )


def two_states(table: str, key: Any) -> StateIncompatibleError:
    """The error for two equal keys that had a value each."""
    return StateIncompatibleError(
        f"State '{table}' was written by an earlier version, which treated keys equal to {reprlib.repr(key)} as "
        "different keys: rows with their fields in another order, or times in another zone. Each has its own "
        "value.",
        state=table,
        hint="Read the savepoint with the State Processor, merge the values, and write it again; or start without "
        "this state.",
    )
