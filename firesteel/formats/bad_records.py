"""Handling of messages that cannot be deserialized: fail, drop, or send to a side output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.api.output_tag import OutputTag
from firesteel.common.errors import FiresteelError, InvalidProgramError, RecordSerializationError
from firesteel.common.serialization import DeserializationSchema
from firesteel.moved_modules import stored_as
from firesteel.spi.source import ReaderContext, ReaderOutput

__all__ = ["BadRecord", "BadRecordError", "BadRecords", "RecordDecoder"]

NUM_RECORDS_IN_ERRORS = "numRecordsInErrors"

_PREVIEW_BYTES = 120


@stored_as("firesteel.connectors.bad_records")
@dataclass(frozen=True)
class BadRecord:
    """A message that could not be read: what a side output for bad records carries."""

    raw: bytes
    """The message as it came."""
    source: str
    """The topic, path or table it came from."""
    split: str
    """The partition or split of the source."""
    offset: int
    """Where in the split: an offset, a byte position or a line."""
    reason: str
    """Why it could not be read."""


class BadRecordError(RecordSerializationError):
    """A message that could not be read, where the policy is to fail; ``bad_record`` is the message."""

    def __init__(self, bad_record: BadRecord):
        preview = repr(bad_record.raw[:_PREVIEW_BYTES])
        if len(bad_record.raw) > _PREVIEW_BYTES:
            preview += f"… ({len(bad_record.raw)} bytes)"
        super().__init__(
            f"A record of '{bad_record.source}', split '{bad_record.split}', offset {bad_record.offset}, "
            f"cannot be read: {bad_record.reason}\n  record:   {preview}",
            record=preview,
            hint="To skip such records, call set_bad_records(BadRecords.drop()) or "
            "set_bad_records(BadRecords.side_output(tag)) on the source's builder.",
        )
        self.bad_record = bad_record


@dataclass(frozen=True)
class BadRecords:
    """What to do with messages that cannot be read; made with ``fail``, ``drop`` or ``side_output``.

    >>> BadRecords.side_output(OutputTag("bad"))
    BadRecords.side_output(OutputTag('bad'))
    """

    skips: bool
    """Whether the job continues without them."""
    tag: OutputTag | None = None
    """The side output that gets them, if one does."""

    @staticmethod
    def fail() -> BadRecords:
        """The job fails with an error that names the record: the default."""
        return BadRecords(skips=False)

    @staticmethod
    def drop() -> BadRecords:
        """They are left out and counted, in the metric ``numRecordsInErrors``."""
        return BadRecords(skips=True)

    @staticmethod
    def side_output(tag: OutputTag) -> BadRecords:
        """They are left out, counted, and sent as :class:`BadRecord` to ``stream.get_side_output(tag)``."""
        if not isinstance(tag, OutputTag):
            raise InvalidProgramError(
                f"BadRecords.side_output needs an OutputTag, got {tag!r}.",
                hint='For example BadRecords.side_output(OutputTag("bad-records")).',
            )
        return BadRecords(skips=True, tag=tag)

    def __repr__(self) -> str:
        if self.tag is not None:
            return f"BadRecords.side_output({self.tag!r})"
        return "BadRecords.drop()" if self.skips else "BadRecords.fail()"


class RecordDecoder:
    """Decodes messages in a reader, a batch at a time, and applies the policy to those that are bad."""

    def __init__(self, schema: DeserializationSchema, policy: BadRecords, context: ReaderContext, source: str) -> None:
        self._schema = schema
        self._policy = policy
        self._source = source
        self._errors = context.get_metrics_group().counter(NUM_RECORDS_IN_ERRORS) if policy.skips else None
        schema.open()

    def decode(
        self,
        messages: Sequence[bytes],
        timestamps: Sequence[int] | None,
        output: ReaderOutput,
        locate: Callable[[int], tuple[str, int]],
    ) -> tuple[list[Any], Sequence[int] | None]:
        """The records of the messages, without those to be skipped (None) and the bad ones.

        ``locate(i)`` gives the split and the offset of message i; it is asked of bad ones only.
        """
        try:
            records = self._schema.deserialize_batch(messages)
        except Exception:  # noqa: BLE001 - a schema may be the user's; which message it was is found out one by one
            records = self._decode_singly(messages, output, locate)
        kept = [record for record in records if record is not None]
        if timestamps is not None and len(kept) < len(records):
            timestamps = [
                timestamp for record, timestamp in zip(records, timestamps, strict=True) if record is not None
            ]
        return kept, timestamps

    def reject(self, raw: bytes | None, split: str, offset: int, error: Exception, output: ReaderOutput) -> None:
        """Applies the policy to one message: raises, counts, or emits to the side output."""
        bad_record = BadRecord(bytes(raw or b""), self._source, split, offset, reason_of(error))
        if self._errors is None:
            raise BadRecordError(bad_record) from error
        self._errors.inc()
        if self._policy.tag is not None:
            output.emit_side(self._policy.tag, [bad_record])

    def _decode_singly(
        self, messages: Sequence[bytes], output: ReaderOutput, locate: Callable[[int], tuple[str, int]]
    ) -> list[Any]:
        records: list[Any] = []
        for i, message in enumerate(messages):
            record = None
            try:
                record = self._schema.deserialize(message)
            except Exception as error:  # noqa: BLE001 - a schema may be the user's
                split, offset = locate(i)
                self.reject(message, split, offset, error, output)
            records.append(record)
        return records


def reason_of(error: Exception) -> str:
    """Why a message could not be read, in one line, from what its schema raised."""
    if isinstance(error, FiresteelError):
        return error.message
    return f"{type(error).__name__}: {error}"
