"""Lookup join: rows beside those that are found in an external system when they come."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import FiresteelError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import distinct_keys
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.bound.nodes import Expression, InputRef, Literal
from firesteel.table.bound.session import Session
from firesteel.table.connector.lookups import FullCacheOptions, LookupCacheOptions, LookupOptions
from firesteel.table.connector.source import LookupFunction
from firesteel.table.evaluation.row_codegen import compile_row
from firesteel.table.runtime.operators.joins.full_cache import FullLookupCache
from firesteel.table.runtime.operators.joins.lookup_cache import LookupCache
from firesteel.table.runtime.operators.joins.output import Pairs
from firesteel.types.internal import from_column
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["LookupJoinOperator", "LookupJoinSpec"]

_THREADS = 8
"""Lookups that run at the same time, at most."""


@dataclass(frozen=True)
class LookupJoinSpec(OperatorSpec):
    """Joins rows with those that a function finds."""

    function: LookupFunction
    keys: tuple[Expression, ...]
    """Values of the key: columns of the input and constants."""
    left: RowType
    right: RowType
    """The columns that come from the table."""
    projection: tuple[Expression, ...]
    filter: Expression | None
    condition: Expression | None
    keeps_left: bool
    row_type: RowType
    rowtime: int | None
    options: LookupOptions
    cache: LookupCacheOptions | FullCacheOptions | None
    session: Session
    key_columns: tuple[int, ...] = ()
    """The columns of the table that are looked up."""
    sleep: Callable[[float], None] = time.sleep

    def create(self, runtime: OperatorRuntime) -> LookupJoinOperator:
        """Returns a new operator for one subtask."""
        return LookupJoinOperator(self)


class LookupJoinOperator(ColumnOperator):
    """Looks the distinct keys of a batch up at once; those of an asynchronous lookup in several threads."""

    def __init__(self, spec: LookupJoinSpec):
        self._spec = spec
        self._columns = [value.index for value in spec.keys if isinstance(value, InputRef)]
        self._project = compile_row(spec.projection, spec.session)
        self._filter = None if spec.filter is None else compile_row([spec.filter], spec.session)
        self._condition = None if spec.condition is None else compile_row([spec.condition], spec.session)
        self._out = Pairs(spec.left, spec.right, spec.row_type, spec.rowtime)
        self._functions: list[LookupFunction] = []
        self._pool: ThreadPoolExecutor | None = None
        self._is_stuck = False

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        options = self._spec.options
        count = min(_THREADS, options.capacity or _THREADS) if options.is_async else 1
        for _ in range(count):
            function = copy.deepcopy(self._spec.function)
            function.open()
            self._functions.append(function)
        if options.is_async:
            self._pool = ThreadPoolExecutor(count, "lookup")
        cache = self._spec.cache
        self._cache = LookupCache(cache, context.processing_time) if isinstance(cache, LookupCacheOptions) else None
        self._full = None
        if isinstance(cache, FullCacheOptions):
            read = self._functions[0].read_all
            self._full = FullLookupCache(cache, self._spec.key_columns, context.processing_time, read)

    def close(self) -> None:
        if self._pool is not None:
            # not for a call that does not end
            self._pool.shutdown(wait=not self._is_stuck, cancel_futures=True)
        for function in self._functions:
            function.close()
        self._functions = []

    # -- batches -----------------------------------------------------------------------------------------------

    def process_columns(self, batch: ColumnBatch) -> None:
        codes, keys = self._keys(batch)
        found = [self._projected(rows) for rows in self._rows(keys)]
        rows = self._out.codecs[0].decode(batch.data)
        kinds = [0] * len(rows) if batch.kinds is None else batch.kinds.tolist()
        for row, code, kind in zip(rows, codes.tolist(), kinds, strict=True):
            joined = False
            for other in found[code]:
                if self._condition is None or self._condition(row + other)[0] is True:
                    self._out.add(0, row, other, kind)
                    joined = True
            if not joined and self._spec.keeps_left:
                self._out.pad(0, row, kind)
        result = self._out.take()
        if result is not None:
            self.emit(result)

    def _keys(self, batch: ColumnBatch) -> tuple[Any, list[tuple[Any, ...]]]:
        """Which key each row has, and the keys, as rows hold them."""
        import numpy as np

        codes, distinct = distinct_keys(batch, self._columns)
        first = np.zeros(len(distinct), np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        columns = []
        for value in self._spec.keys:
            if isinstance(value, InputRef):
                columns.append(from_column(batch.data.column(value.index).take(first), value.type))
            else:
                assert isinstance(value, Literal)
                columns.append([value.value] * len(first))
        return codes, list(zip(*columns, strict=True))

    def _projected(self, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        test = self._filter
        return [self._project(row) for row in rows if test is None or test(row)[0] is True]

    # -- lookups -----------------------------------------------------------------------------------------------

    def _rows(self, keys: list[tuple[Any, ...]]) -> list[Sequence[tuple[Any, ...]]]:
        """The rows of each key; null is equal to nothing."""
        if self._full is not None:
            self._full.refresh()
            return [() if None in key else self._full.get(key) for key in keys]
        found: list[Any] = [() if None in key else None for key in keys]
        if self._cache is not None:
            found = [self._cache.get(key) if rows is None else rows for key, rows in zip(keys, found, strict=True)]
        missing = [index for index, rows in enumerate(found) if rows is None]
        attempts = self._spec.options.max_attempts
        while missing and attempts:
            attempts -= 1
            for index, rows in zip(missing, self._look_up([keys[index] for index in missing]), strict=True):
                found[index] = rows
            missing_again = [index for index in missing if not found[index]]
            if self._cache is not None:
                for index in missing:
                    if found[index] or not attempts:
                        self._cache.put(keys[index], found[index])
            missing = missing_again
            if missing and attempts:
                self._spec.sleep(self._spec.options.delay_ms / 1000)
        return found

    def _look_up(self, keys: list[tuple[Any, ...]]) -> Sequence[Sequence[tuple[Any, ...]]]:
        if self._pool is None or len(keys) == 1:
            return self._functions[0].lookup_many(keys)
        parts = min(len(keys), len(self._functions))
        bounds = [part * len(keys) // parts for part in range(parts + 1)]
        calls = [
            self._pool.submit(function.lookup_many, keys[begin:end])
            for function, begin, end in zip(self._functions, bounds, bounds[1:], strict=False)
        ]
        timeout_ms = self._spec.options.timeout_ms
        timeout = None if timeout_ms is None else timeout_ms / 1000
        found: list[Sequence[tuple[Any, ...]]] = []
        for call in calls:
            try:
                found += call.result(timeout)
            except TimeoutError as error:
                self._is_stuck = True
                raise FiresteelError(
                    f"A lookup has not ended within {timeout} seconds.", hint="Set 'timeout' of the LOOKUP hint."
                ) from error
        return found
