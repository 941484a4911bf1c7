"""Sort order of the rows of a partition in a batch, encoded in the high half of a row's number.

1. Broadcast streams come first, so that the other side finds their records in the broadcast state.
2. Then come records: those of a keyed exchange bucket by bucket, those of others producer by producer, each in the
   order they were sent.
3. Reports come last.

The order has 31 bits. Where that is not enough to distinguish rows, and within a bucket, the reader sorts them by edge,
producer and sequence: in which order they were fetched never shows.
"""

from __future__ import annotations

from firesteel.config.configuration import Configuration
from firesteel.config.exchange_options import BATCH_KEY_BUCKETS
from firesteel.execution.stages.exchange_rows import ExchangeRow

__all__ = [
    "BROADCAST_ORDER",
    "REPORT_ORDER",
    "bucket_of_row",
    "bucket_order",
    "buckets_per_subtask",
    "grouped_sequence",
    "record_order",
    "row_position",
]

BROADCAST_ORDER = 0
REPORT_ORDER = (1 << 31) - 1
_FIRST_ORDER = 1
_SEQUENCE_BITS = 16
_MAX_PRODUCERS = (1 << 14) - 1
_LAST_SEQUENCE = (1 << _SEQUENCE_BITS) - 1
_MAX_BUCKETS = 1 << 24
_MIN_BUCKETS_PER_SUBTASK = 16
_COUNT_BITS = 32


def buckets_per_subtask(configuration: Configuration, parallelism: int) -> int:
    """Into how many buckets the keys of each subtask of a consumer are divided: the same for all its producers.

    >>> buckets_per_subtask(Configuration(), 4)
    256
    """
    wanted = configuration.get(BATCH_KEY_BUCKETS)
    return max(1, min(max(wanted // parallelism, min(wanted, _MIN_BUCKETS_PER_SUBTASK)), _MAX_BUCKETS))


def bucket_order(bucket: int) -> int:
    """The order of a row of one bucket of keys."""
    return _FIRST_ORDER + bucket


def record_order(producer: int, sequence: int) -> int:
    """The order of a row of records in an exchange that is not keyed."""
    return _FIRST_ORDER + (min(producer, _MAX_PRODUCERS) << _SEQUENCE_BITS | min(sequence, _LAST_SEQUENCE))


def grouped_sequence(bucket: int, sequence: int) -> int:
    """What a row of records grouped by key has as its sequence: the reader does not see a row's number.

    >>> bucket_of_row(grouped_sequence(7, 3))
    7
    """
    return bucket << _COUNT_BITS | sequence


def bucket_of_row(sequence: int) -> int:
    """The bucket of a row of records grouped by key."""
    return sequence >> _COUNT_BITS


def row_position(row: ExchangeRow) -> tuple[int, int, int]:
    """By which rows of the same order are sorted."""
    return row.edge, row.producer, row.sequence
