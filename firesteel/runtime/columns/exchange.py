"""Exchange of column batches: which rows go to which channel, and how small parts become one buffer again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from firesteel.runtime.columns.batch import ColumnBatch, concat_batches
from firesteel.runtime.columns.keys import ColumnKeySelector, KeyGroups
from firesteel.runtime.model.key_groups import KeyGroupRange, subtask_of

__all__ = ["KeyExchange", "gather", "is_gathered", "own_rows", "rebalance"]


class KeyExchange:
    """Splits batches by the subtask that owns the key group of a row."""

    def __init__(self, selector: ColumnKeySelector, max_parallelism: int, channels: int):
        import numpy as np

        self._groups = KeyGroups(selector.columns, max_parallelism)
        self._channels = channels
        owners = [subtask_of(group, max_parallelism, channels) for group in range(max_parallelism)]
        # few bits: numpy sorts those in linear time
        self._owners = np.array(owners, np.uint8 if channels <= 256 else np.uint16)

    def split(self, batch: ColumnBatch) -> Iterator[tuple[int, ColumnBatch]]:
        """The rows of each channel that gets any, in order."""
        import numpy as np

        if self._channels == 1:
            yield 0, batch
            return
        owners = self._owners[self._groups.of(batch)]
        counts = np.bincount(owners, minlength=self._channels).tolist()
        if max(counts) == len(batch):
            yield counts.index(len(batch)), batch
            return
        sorted_rows = batch.take(np.argsort(owners, kind="stable"))
        start = 0
        for channel, count in enumerate(counts):
            if count:
                yield channel, sorted_rows.slice(start, count)
                start += count


def own_rows(batch: ColumnBatch, selector: ColumnKeySelector, max_parallelism: int, own: KeyGroupRange) -> ColumnBatch:
    """The rows whose key groups are in a range."""
    import numpy as np

    groups = KeyGroups(selector.columns, max_parallelism).of(batch)
    return batch.take(np.flatnonzero((groups >= own.start) & (groups <= own.end)))


def rebalance(batch: ColumnBatch, channels: int, first: int) -> Iterator[tuple[int, ColumnBatch]]:
    """Parts of equal size for all channels, from the first one on; it and those after it get what is left over."""
    size, larger = divmod(len(batch), channels)
    start = 0
    for part in range(channels if size else larger):
        count = size + (part < larger)
        yield (first + part) % channels, batch.slice(start, count)
        start += count


def is_gathered(parts: Sequence[ColumnBatch], size: int) -> bool:
    """Whether parts have that size together, if they are all like the last one."""
    last = parts[-1]
    if not len(last):
        return False
    rows = sum(map(len, parts))
    return rows * (last.nbytes / len(last)) >= size


def gather(parts: Sequence[ColumnBatch], max_size: int) -> Iterator[ColumnBatch]:
    """Batches of up to that size with the rows of the parts, in order."""
    begin = 0
    for index in range(1, len(parts) + 1):
        if index == len(parts) or not _are_alike(parts[begin], parts[index]):
            yield from _cut(concat_batches(parts[begin:index]), max_size)
            begin = index


def _are_alike(one: ColumnBatch, other: ColumnBatch) -> bool:
    return one.rowtime == other.rowtime and one.data.schema.equals(other.data.schema, check_metadata=True)


def _cut(batch: ColumnBatch, max_size: int) -> Iterator[ColumnBatch]:
    count, size = len(batch), batch.nbytes
    if size <= max_size or count <= 1:
        if count:
            yield batch
        return
    parts = min(-(-size // max_size), count)
    for part in range(parts):
        start, end = part * count // parts, (part + 1) * count // parts
        yield batch.slice(start, end - start)
