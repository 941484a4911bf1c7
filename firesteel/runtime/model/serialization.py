"""Record serialization, with an error that names the record that cannot be pickled."""

from __future__ import annotations

import pickle
import reprlib
from collections.abc import Sequence
from typing import Any

from firesteel.common.errors import RecordSerializationError
from firesteel.runtime.model.elements import Batch

__all__ = ["deserialize_batch", "preview_record", "serialize_records"]

PROTOCOL = 5
PREVIEW_CHARS = 200

_loads = pickle.loads
_dumps = pickle.dumps


def serialize_records(values: Sequence[Any], timestamps: Sequence[int] | None) -> bytes:
    """The records as one payload; raises RecordSerializationError naming the record that does not pickle."""
    try:
        return _dumps((values, timestamps), PROTOCOL)
    except Exception:  # noqa: BLE001 - user classes may raise anything
        return _serialize_by_value(values, timestamps)


def deserialize_batch(payload: bytes | bytearray) -> Batch:
    try:
        values, timestamps = _loads(payload)
    except Exception as error:
        raise RecordSerializationError(
            f"A buffer of records could not be deserialized: {type(error).__name__}: {error}",
            hint="A record's class must be importable in every process, and its __reduce__ or __getstate__ "
            "must give what its constructor or __setstate__ takes.",
        ) from error
    return Batch(values, timestamps)


def preview_record(record: Any) -> str:
    """The record's repr, cut to 200 characters; cheap for large records, and never fails."""
    try:
        text = _preview.repr(record[: PREVIEW_CHARS + 1] if type(record) in (bytes, bytearray) else record)
    except Exception:  # noqa: BLE001 - a preview must not hide the error it is made for
        text = f"<{type(record).__qualname__} whose repr fails>"
    return text if len(text) <= PREVIEW_CHARS else text[: PREVIEW_CHARS - 1] + "…"


def _serialize_by_value(values: Sequence[Any], timestamps: Sequence[int] | None) -> bytes:
    # Classes that only the job's own script defines reach a process by value and cannot be looked up by name
    # there, which is all plain pickle does.
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps((list(values), timestamps), PROTOCOL))
    except Exception as error:
        for record in values:
            try:
                cloudpickle.dumps(record, PROTOCOL)
            except Exception as cause:
                raise _not_serializable(record, cause) from cause
        raise _not_serializable(values, error) from error


def _not_serializable(record: Any, cause: Exception) -> RecordSerializationError:
    return RecordSerializationError(
        f"A record of type {type(record).__qualname__} cannot be sent to another process: "
        f"{type(cause).__name__}: {cause}",
        record=preview_record(record),
        hint="Records that cross processes must be picklable. Emit plain data (tuples, dicts, dataclasses, Row), "
        "and make locks, files and connections in open() of the function that uses them.",
    )


_preview = reprlib.Repr()
_preview.maxlevel = 5
_preview.maxlist = _preview.maxtuple = _preview.maxdict = _preview.maxset = _preview.maxfrozenset = 20
_preview.maxdeque = _preview.maxarray = 20
_preview.maxstring = _preview.maxother = _preview.maxlong = PREVIEW_CHARS
