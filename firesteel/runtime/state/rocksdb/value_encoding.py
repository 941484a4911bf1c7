"""Value encoding of RocksDB rows.

A value is its pickle, so that reading one is a single ``pickle.loads``, which takes no notice of what follows it:

- the pickled *originals* (key, namespace, and in a map the map key) with their length and a mark, where the row's key
  does not encode them;
- in states with time-to-live the time of the last access, eight bytes.

So expiry is judged, and a time of access replaced, without unpickling anything.
"""

from __future__ import annotations

import pickle
import reprlib
import struct
from collections.abc import Sequence
from typing import Any

from firesteel.common.errors import CheckpointError, FiresteelError, StateIncompatibleError
from firesteel.runtime.state.rocksdb.classes import dumps_by_name

__all__ = [
    "PROTOCOL",
    "STAMP_BYTES",
    "dumps_any",
    "loads",
    "originals_of",
    "pack_stamp",
    "stamp_of",
    "trailer_of",
    "without_originals",
]

PROTOCOL = 5
STAMP_BYTES = 8

_STOP = ord(".")
"""What every pickle ends with."""
_MARK = b"\1"
_LENGTH_BYTES = 4

_stamp = struct.Struct("<q")
pack_stamp, _unpack_stamp = _stamp.pack, _stamp.unpack
_loads = pickle.loads


def dumps_any(value: Any, state: str, key: Any) -> bytes:
    """Pickles what plain pickle could not: objects of classes that only the job's script defines."""
    try:
        return dumps_by_name(value)
    except Exception as error:
        raise CheckpointError(
            f"A value of type {type(value).__qualname__} cannot be kept in state '{state}' for key "
            f"{reprlib.repr(key)}: {type(error).__name__}: {error}",
            hint="Keep plain data in state (tuples, dicts, dataclasses, Row); make locks, files and connections in "
            "open().",
        ) from error


def loads(data: bytes) -> Any:
    """The value of a row; for where speed is not all."""
    try:
        return _loads(data)
    except Exception as error:
        raise unreadable(error) from error


def unreadable(error: Exception) -> FiresteelError:
    """The error for a value that cannot be unpickled."""
    return StateIncompatibleError(
        f"State could not be read: {type(error).__name__}: {error}",
        hint="The classes of keys and values must be importable where the job runs, under the names they had when the "
        "state was written.",
    )


def trailer_of(originals: Sequence[Any]) -> bytes:
    """What follows the pickle of a value whose row does not encode its key, namespace or map key."""
    try:
        data = pickle.dumps(tuple(originals), PROTOCOL)
    except Exception:  # noqa: BLE001 - user classes may raise anything
        data = dumps_by_name(tuple(originals))
    return data + len(data).to_bytes(_LENGTH_BYTES, "little") + _MARK


def originals_of(body: bytes) -> tuple[Any, ...] | None:
    """Key, namespace and, in a map, map key, if they stand beside the value; ``body`` is without time of access."""
    if body[-1] == _STOP:
        return None
    end = len(body) - _LENGTH_BYTES - 1
    length = int.from_bytes(body[end : end + _LENGTH_BYTES], "little")
    found: tuple[Any, ...] = loads(body[end - length : end])
    return found


def without_originals(body: bytes) -> bytes:
    """The pickle of a value alone; ``body`` is without time of access."""
    if body[-1] == _STOP:
        return body
    end = len(body) - _LENGTH_BYTES - 1
    return body[: end - int.from_bytes(body[end : end + _LENGTH_BYTES], "little")]


def stamp_of(data: bytes) -> int:
    """The time of the last access."""
    time: int = _unpack_stamp(data[-STAMP_BYTES:])[0]
    return time
