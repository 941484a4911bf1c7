"""Policies of a FileSink: bucket assigners, rolling policies and file names."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from firesteel.common.errors import InvalidProgramError, RecordSerializationError
from firesteel.common.types import Row

__all__ = [
    "BasePathBucketAssigner",
    "BucketAssigner",
    "CheckpointRollingPolicy",
    "DateTimeBucketAssigner",
    "DefaultRollingPolicy",
    "FieldBucketAssigner",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
]


class BucketAssigner(ABC):
    """Chooses the bucket of each record: a directory beneath the sink's base path."""

    @dataclass(frozen=True)
    class Context:
        """What is known of the record: the time now and its own timestamp, both in epoch milliseconds."""

        current_processing_time: int
        timestamp: int | None

    @abstractmethod
    def get_bucket_id(self, element: Any, context: Context) -> str:
        """The bucket as a relative path; the empty string for the base path itself."""

    def get_common_bucket_id(self, current_processing_time: int) -> str | None:
        """The bucket of all records at this time, or None if that depends on the record."""
        return None

    @staticmethod
    def base_path_bucket_assigner() -> BasePathBucketAssigner:
        """All files directly in the base path."""
        return BasePathBucketAssigner()

    @staticmethod
    def date_time_bucket_assigner(
        format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None
    ) -> DateTimeBucketAssigner:
        """One bucket for each hour, or other period, of the time at which records are written.

        :param format_str: a pattern of Java's DateTimeFormatter, with fixed-width numbers and quoted text.
        :param timezone_id: such as ``Europe/Berlin`` or ``GMT-08:00``; the system's own if None.
        """
        return DateTimeBucketAssigner(format_str, timezone_id)

    @staticmethod
    def by_field(field: str | int | Callable[[Any], Any], name: str | None = None) -> FieldBucketAssigner:
        """One bucket for each value of a field, such as ``country=DE``, the way Hive and Spark lay out partitions.

        :param field: the name or position of a field, or a function from the record to the value.
        :param name: what stands before the ``=``; if None the field's name, ``f0`` and so on for a position, and
            ``key`` for a function.
        """
        return FieldBucketAssigner(field, name)


class BasePathBucketAssigner(BucketAssigner):
    """Puts all files directly into the base path."""

    def get_bucket_id(self, element: Any, context: BucketAssigner.Context) -> str:
        """The base path itself."""
        return ""

    def get_common_bucket_id(self, current_processing_time: int) -> str:
        """The base path itself."""
        return ""

    def __repr__(self) -> str:
        return "base path"


class FieldBucketAssigner(BucketAssigner):
    """Makes a bucket of the value of a field."""

    def __init__(self, field: str | int | Callable[[Any], Any], name: str | None = None) -> None:
        if not isinstance(field, (str, int)) and not callable(field):
            raise InvalidProgramError(f"by_field needs the name or position of a field, or a function; not {field!r}.")
        if name is None:
            name = "key" if callable(field) else field if isinstance(field, str) else f"f{field}"
        self._field = field
        self._name = _escape(name)

    def get_bucket_id(self, element: Any, context: BucketAssigner.Context) -> str:
        """The bucket of the value, in which characters that paths cannot have are ``%`` and two hex digits."""
        value = self._value(element)
        text = "" if value is None else str(value)
        return f"{self._name}={_escape(text) if text else _NO_VALUE}"

    def _value(self, element: Any) -> Any:
        field = self._field
        try:
            if callable(field):
                return field(element)
            if isinstance(field, str) and not isinstance(element, (Row, Mapping)):
                return getattr(element, field)
            return element[field]
        except (LookupError, AttributeError, TypeError, ValueError) as error:
            if callable(field):
                raise
            raise RecordSerializationError(
                f"The record {element!r:.200} has no field {field!r} to take its bucket from.",
                record=f"{element!r:.200}",
                hint="by_field needs records that all have the field: a Row, a dict, a tuple or an object.",
            ) from error

    def __repr__(self) -> str:
        return f"field '{self._name}'"


_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]|^[._]")


def _escape(text: str) -> str:
    """A name that can be one step of a path, as Hive writes it.

    >>> _escape("a/b=c")
    'a%2Fb%3Dc'
    """
    return _UNSAFE.sub(lambda match: f"%{ord(match.group()):02X}", text)


_DATE_FIELDS = {
    "yyyy": "%Y",
    "uuuu": "%Y",
    "yy": "%y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
}
_DATE_TOKEN = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")


def _to_strftime(pattern: str) -> str:
    """Translates a pattern of Java's DateTimeFormatter.

    >>> _to_strftime("yyyy-MM-dd'T'HH")
    '%Y-%m-%dT%H'
    """
    parts = []
    position = 0
    while position < len(pattern):
        match = _DATE_TOKEN.match(pattern, position)
        piece = match.group() if match else ""
        if piece.startswith("'"):
            parts.append("'" if len(piece) == 2 else piece[1:-1].replace("''", "'").replace("%", "%%"))
        elif piece in _DATE_FIELDS:
            parts.append(_DATE_FIELDS[piece])
        elif piece and not piece[0].isalpha():
            parts.append(piece.replace("%", "%%"))
        else:
            raise InvalidProgramError(
                f"date_time_bucket_assigner: '{piece or pattern[position:]}' in '{pattern}' is not known.",
                hint=f"These fields are: {', '.join(_DATE_FIELDS)}; other letters must be in single quotes.",
            )
        position += len(piece)
    return "".join(parts)


def _to_timezone(timezone_id: str | None) -> tzinfo | None:
    if timezone_id is None:
        return None
    offset = re.fullmatch(r"(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d{2}))?", timezone_id)
    if offset:
        sign = -1 if offset[1] == "-" else 1
        return timezone(sign * timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0)))
    try:
        return ZoneInfo(timezone_id)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidProgramError(f"date_time_bucket_assigner: there is no time zone '{timezone_id}'.") from error


class DateTimeBucketAssigner(BucketAssigner):
    """Makes a bucket of the time at which records are written."""

    def __init__(self, format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> None:
        self.format_str = format_str
        self._strftime_format = _to_strftime(format_str)
        self._timezone = _to_timezone(timezone_id)

    def get_bucket_id(self, element: Any, context: BucketAssigner.Context) -> str:
        """The bucket of the time now."""
        return self.get_common_bucket_id(context.current_processing_time)

    def get_common_bucket_id(self, current_processing_time: int) -> str:
        """The bucket of the time now."""
        now = datetime.fromtimestamp(current_processing_time / 1000, tz=self._timezone)
        return now.strftime(self._strftime_format)

    def __repr__(self) -> str:
        return f"date and time '{self.format_str}'"


class RollingPolicy(ABC):
    """Decides when a part file takes no further record and a new one is begun.

    Records become visible with the checkpoint after the roll; one that never rolls shows nothing before the end.
    """

    @abstractmethod
    def should_roll_on_event(self, size: int) -> bool:
        """Whether a file of so many bytes is to take no further record."""

    @abstractmethod
    def should_roll_on_processing_time(self, age_ms: int, inactive_ms: int) -> bool:
        """Whether a file so old, written to so long ago, is to take no further record."""

    def should_roll_on_checkpoint(self, size: int) -> bool:
        """Whether a file of so many bytes is to take no further record after a checkpoint; always, by default."""
        return True

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128,
        rollover_interval: int = 60 * 1000,
        inactivity_interval: int = 60 * 1000,
    ) -> DefaultRollingPolicy:
        """Rolls by size in bytes, age in milliseconds and time without writing in milliseconds."""
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Rolls at checkpoints and at no other time."""
        return OnCheckpointRollingPolicy()


@dataclass(frozen=True)
class DefaultRollingPolicy(RollingPolicy):
    """Rolls a part file that is too large, too old, or was not written to for too long; not at every checkpoint."""

    part_size: int = 1024 * 1024 * 128
    rollover_interval: int = 60 * 1000
    inactivity_interval: int = 60 * 1000

    def __post_init__(self) -> None:
        for field in ("part_size", "rollover_interval", "inactivity_interval"):
            if getattr(self, field) <= 0:
                raise InvalidProgramError(f"RollingPolicy: {field} must be positive, not {getattr(self, field)}.")

    def should_roll_on_event(self, size: int) -> bool:
        """By size."""
        return size > self.part_size

    def should_roll_on_checkpoint(self, size: int) -> bool:
        """By size, as at any other time."""
        return size > self.part_size

    def should_roll_on_processing_time(self, age_ms: int, inactive_ms: int) -> bool:
        """By age and inactivity."""
        return age_ms >= self.rollover_interval or inactive_ms >= self.inactivity_interval


class CheckpointRollingPolicy(RollingPolicy):
    """Rolls part files at every checkpoint, and when a subclass decides so: bulk formats need such a policy."""

    def should_roll_on_checkpoint(self, size: int) -> bool:
        """Always."""
        return True


@dataclass(frozen=True)
class OnCheckpointRollingPolicy(CheckpointRollingPolicy):
    """Rolls part files at every checkpoint, and only then."""

    def should_roll_on_event(self, size: int) -> bool:
        """Never."""
        return False

    def should_roll_on_processing_time(self, age_ms: int, inactive_ms: int) -> bool:
        """Never."""
        return False


@dataclass(frozen=True)
class OutputFileConfig:
    """What stands before and behind the middle of a part file's name."""

    part_prefix: str = "part"
    part_suffix: str = ""

    def __post_init__(self) -> None:
        for text in (self.part_prefix, self.part_suffix):
            if "/" in text:
                raise InvalidProgramError(f"OutputFileConfig: '{text}' must not contain a slash.")
        if self.part_prefix.startswith((".", "_")):
            raise InvalidProgramError(f"OutputFileConfig: the prefix '{self.part_prefix}' would hide finished files.")

    def get_part_prefix(self) -> str:
        """What names begin with."""
        return self.part_prefix

    def get_part_suffix(self) -> str:
        """What names end with."""
        return self.part_suffix

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        """Begins a configuration."""
        return OutputFileConfig.OutputFileConfigBuilder()

    class OutputFileConfigBuilder:
        """Builds an OutputFileConfig."""

        def __init__(self) -> None:
            self.part_prefix = "part"
            self.part_suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Sets what names begin with."""
            self.part_prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            """Sets what names end with."""
            self.part_suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            """The configuration."""
            return OutputFileConfig(self.part_prefix, self.part_suffix)
