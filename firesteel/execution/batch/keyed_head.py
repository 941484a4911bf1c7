"""Head operator of a keyed task in a batch: reads one bucket of keys at a time, key by key.

While the records of a key are processed, its state is all the state there is, and event time stands still. Then its
timers fire, with event time at its end, and its state is gone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

from firesteel.execution.batch.bucket_split import BucketSplit, is_large
from firesteel.execution.batch.columns import Columns, SortedPart, sort_columns
from firesteel.execution.batch.grouped_input import Grouping, read_columns, sort_by_timestamps
from firesteel.execution.stages.row_spool import RowSpool
from firesteel.runtime.chain.running_operator import RunningOperator, SecondInput
from firesteel.runtime.codegen.loops import Loop, PartsLoop, compile_loop, compile_loop_over_parts
from firesteel.runtime.model.partitioner import KeyGroupPartitioner
from firesteel.runtime.operators.grouped import GroupedOperator
from firesteel.runtime.state.single_key.backend import SingleKeyStateBackend
from firesteel.runtime.task.task import Task
from firesteel.runtime.time.timers import BatchTimerService

__all__ = ["KeyedHead"]

_PART_RECORDS = 4096
"""What the loop gets of a long group at once, so that what it produces can be handed on in between."""

_MAX_COLUMN_BYTES = 64 << 20

Step = Callable[[], None]


class KeyedHead:
    """Carries groups through the first operator of a chain."""

    def __init__(self, task: Task):
        self._task = task
        self._head: RunningOperator = task.head
        backend = self._head.backend
        assert isinstance(backend, SingleKeyStateBackend)
        self._backend = backend
        self._timers = [
            (timers, *timers.heaps) for timers in self._head.timer_services if isinstance(timers, BatchTimerService)
        ]
        keyed = {i.input_index for i in task.descriptor.inputs if isinstance(i.partitioner, KeyGroupPartitioner)}
        self._groupings = {index: Grouping(self._head, index) for index in sorted(keyed)}
        self._split: BucketSplit | None = None
        operator = self._head.operator
        self._grouped = operator if isinstance(operator, GroupedOperator) else None
        self._end_operator_key: Step | None = getattr(operator, "end_key", None)
        self._end_groups: Step | None = getattr(getattr(operator, "process_context", operator), "end_groups", None)
        self._parts_loops: dict[bool, PartsLoop] = {}
        self._loops: dict[tuple[int, bool], Loop] = {}

    @contextmanager
    def without_key(self) -> Iterator[None]:
        """While it lasts records of a broadcast side are processed, for which there is no keyed state."""
        self._backend.refuse_access(True)
        try:
            yield
        finally:
            self._backend.refuse_access(False)

    def process(self, run: RowSpool, input_of_edge: Mapping[int, int]) -> Iterator[Step]:
        """Processes a bucket, in steps."""
        columns = self._columns_of(run)
        if columns is not None:
            yield lambda: self._process_columns(columns)
            return
        if not is_large(run):
            yield lambda: self._process_rows(run, input_of_edge)
            return
        split = BucketSplit(self._groupings, run)
        try:
            for row in run.rows():
                index = input_of_edge[row.edge]
                yield lambda: split.add(row, index)  # noqa: B023 - called before the next
            self._split = split
            for part in range(split.parts):
                yield lambda: self._process_part(split, part)  # noqa: B023 - called before the next
        finally:
            self._split = None
            split.close()

    def _columns_of(self, run: RowSpool) -> list[Columns] | None:
        """The columns of a bucket if it consists of nothing else and they fit into memory."""
        if len(self._groupings) > 1 or run.bytes > _MAX_COLUMN_BYTES:
            return None
        columns: list[Columns] = []
        for row in run.rows():
            found = read_columns(row, columns[0].layout if columns else None)
            if found is None:
                return None
            columns += found
        return columns

    def _process_columns(self, columns: Sequence[Columns]) -> None:
        with_timestamps = columns[0].layout.with_timestamps
        groups = sort_columns(columns)
        with self._at_work():
            if self._grouped is not None:
                self._process_grouped_columns(self._grouped, groups)
            else:
                self._run_parts(self._column_parts(groups, with_timestamps), with_timestamps=with_timestamps)

    def _column_parts(self, groups: Iterable[SortedPart], with_timestamps: bool) -> Iterator[Any]:
        task, backend = self._task, self._backend
        for key, values, timestamps, is_last in groups:
            backend.key = key
            task.records_in += len(values)
            yield (values, timestamps) if with_timestamps else values
            if is_last:
                self._end_key()

    def _process_grouped_columns(self, operator: GroupedOperator, groups: Iterable[SortedPart]) -> None:
        held: list[Any] = []
        held_times: list[int] = []
        for key, values, timestamps, is_last in groups:
            self._backend.key = key
            self._count(values)
            if timestamps is None:
                operator.process_group(values, None)
            elif is_last and not held:
                operator.process_group(values, timestamps)
            else:
                # all records with timestamps have to come at once
                held += values
                held_times += timestamps
                if is_last:
                    operator.process_group(held, held_times)
                    held, held_times = [], []
            if is_last:
                self._end_key()

    def _process_rows(self, run: RowSpool, input_of_edge: Mapping[int, int]) -> None:
        for row in run.rows():
            self._groupings[input_of_edge[row.edge]].add_row(row)
        self._process_groups()

    def _process_part(self, split: BucketSplit, part: int) -> None:
        for index, values, timestamps in split.read(part):
            self._groupings[index].add(values, timestamps)
        self._process_groups()

    # -- groups -------------------------------------------------------------------------------------

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Around the processing of some keys."""
        task = self._task
        task.running = True
        try:
            yield
            if self._end_groups is not None:
                self._end_groups()
            task.make_room()
            self._backend.key = None  # but not after a failure, whose report includes it
        finally:
            task.running = False
            for grouping in self._groupings.values():
                grouping.clear()

    def _process_groups(self) -> None:
        """Processes all keys of the groupings."""
        with self._at_work():
            if len(self._groupings) > 1:
                self._process_two_inputs()
            else:
                self._process_one_input()

    def _process_one_input(self) -> None:
        ((index, grouping),) = self._groupings.items()
        if self._grouped is not None:
            self._process_grouped(self._grouped, grouping, index)
        elif not grouping.stamped:
            self._run_parts(self._plain_parts(grouping, index), with_timestamps=False)
        elif not grouping.plain:
            self._run_parts(self._stamped_parts(grouping, index), with_timestamps=True)
        else:
            for key in self._keys():
                self._backend.key = key
                self._run_parts(self._plain_of(grouping, index, key), with_timestamps=False)
                self._run_parts(_slices(*self._stamped_of(grouping, index, key)), with_timestamps=True)
                self._end_key()
                if self._end_groups is not None:
                    self._end_groups()

    def _process_grouped(self, operator: GroupedOperator, grouping: Grouping, index: int) -> None:
        for key in self._keys():
            self._backend.key = key
            for values in self._plain_of(grouping, index, key):
                self._count(values)
                operator.process_group(values, None)
            if grouping.stamped:
                values, timestamps = self._stamped_of(grouping, index, key)
                if values:
                    self._count(values)
                    operator.process_group(values, timestamps)
            self._end_key()

    def _run_parts(self, parts: Iterator[Any], *, with_timestamps: bool) -> None:
        loop = self._parts_loops.get(with_timestamps)
        if loop is None:
            # the first records also go through a check of declared types
            compile_loop_over_parts(self._head, with_timestamps, checked=True)(islice(parts, 1))
            loop = self._parts_loops[with_timestamps] = compile_loop_over_parts(self._head, with_timestamps)
        loop(parts)

    def _plain_parts(self, grouping: Grouping, index: int) -> Iterator[Sequence[Any]]:
        """All records, none of which has a timestamp, key by key."""
        task, backend, split = self._task, self._backend, self._split
        for key, values in grouping.plain.items():
            backend.key = key
            if len(values) <= _PART_RECORDS and split is None:
                task.records_in += len(values)
                yield values
            else:
                for part in self._plain_of(grouping, index, key):
                    task.records_in += len(part)
                    yield part
            self._end_key()

    def _stamped_parts(self, grouping: Grouping, index: int) -> Iterator[tuple[Sequence[Any], Sequence[int]]]:
        """All records, all of which have timestamps, key by key."""
        task, backend = self._task, self._backend
        for key in grouping.stamped:
            backend.key = key
            for part in _slices(*self._stamped_of(grouping, index, key)):
                task.records_in += len(part[0])
                yield part
            self._end_key()

    def _process_two_inputs(self) -> None:
        for key in self._keys():
            self._backend.key = key
            stamped = []
            for index, grouping in self._groupings.items():
                for values in self._plain_of(grouping, index, key):
                    self._run(index, values, None)
                stamped.append(self._stamped_of(grouping, index, key))
            self._merge(*stamped)
            self._end_key()
            if self._end_groups is not None:
                self._end_groups()

    def _merge(self, first: tuple[list[Any], list[int]], second: tuple[list[Any], list[int]]) -> None:
        """Processes records of two inputs by timestamp; where these are equal, those of the first before."""
        (values, times), (others, other_times) = first, second
        begin = other = 0
        while begin < len(values) and other < len(others):
            end = bisect_right(times, other_times[other], begin)
            if end > begin:
                self._run(0, values[begin:end], times[begin:end])
                begin = end
                continue
            end = bisect_left(other_times, times[begin], other)
            self._run(1, others[other:end], other_times[other:end])
            other = end
        if begin < len(values):
            self._run(0, values[begin:], times[begin:])
        if other < len(others):
            self._run(1, others[other:], other_times[other:])

    def _run(self, index: int, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        for start in range(0, len(values), _PART_RECORDS):
            end = start + _PART_RECORDS
            part, times = values[start:end], None if timestamps is None else timestamps[start:end]
            self._count(part)
            loop = self._loops.get((index, timestamps is not None))
            if loop is None:
                target: Any = self._head if index == 0 else SecondInput(self._head)
                name, with_timestamps = self._head.descriptor.name, timestamps is not None
                compile_loop(name, [target], with_timestamps, checked=True, keyed=self._head)(part, times)
                self._loops[index, with_timestamps] = compile_loop(name, [target], with_timestamps, keyed=self._head)
            else:
                loop(part, times)

    def _count(self, values: Sequence[Any]) -> None:
        self._task.records_in += len(values)

    # -- one key ------------------------------------------------------------------------------------

    def _keys(self) -> Iterable[Any]:
        groupings = list(self._groupings.values())
        if len(groupings) == 1:
            return groupings[0].keys()
        return dict.fromkeys(chain.from_iterable(grouping.keys() for grouping in groupings))

    def _plain_of(self, grouping: Grouping, index: int, key: Any) -> Iterator[Sequence[Any]]:
        """A key's records without timestamps; those of a key with very many are read as they are needed."""
        values = grouping.plain.get(key, ())
        for start in range(0, len(values), _PART_RECORDS):
            yield values[start : start + _PART_RECORDS]
        if self._split is not None:
            for more, timestamps in self._split.read_heavy(key, index):
                if timestamps is None:
                    yield more

    def _stamped_of(self, grouping: Grouping, index: int, key: Any) -> tuple[list[Any], list[int]]:
        """A key's records with timestamps, sorted by them."""
        found = grouping.stamped.get(key)
        if found is None:
            return [], []
        _, _, values, timestamps = found
        if self._split is not None:
            for more, more_times in self._split.read_heavy(key, index):
                if more_times is not None:
                    values += more
                    timestamps += more_times
        return sort_by_timestamps(values, timestamps)

    def _end_key(self) -> None:
        for timers, event, processing in self._timers:
            if event or processing:
                timers.end_key()
        if self._end_operator_key is not None:
            self._end_operator_key()
        self._backend.end_key()


def _slices(values: list[Any], timestamps: list[int]) -> Iterator[tuple[Sequence[Any], Sequence[int]]]:
    if len(values) <= _PART_RECORDS:
        if values:
            yield values, timestamps
        return
    for start in range(0, len(values), _PART_RECORDS):
        end = start + _PART_RECORDS
        yield values[start:end], timestamps[start:end]
