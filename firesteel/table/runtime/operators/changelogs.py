"""Changelogs as rows, and rows as changelogs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.types import RowKind
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.bound.errors import EvaluationError

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["FromChangelogSpec", "ToChangelogSpec"]


@dataclass(frozen=True)
class ToChangelogSpec(OperatorSpec):
    """Emits each change as an insertion, after the code of its kind."""

    column: str
    codes: tuple[tuple[RowKind, str], ...]

    def create(self, runtime: OperatorRuntime) -> ToChangelogOperator:
        """Returns a new operator for one subtask."""
        return ToChangelogOperator(self)


class ToChangelogOperator(ColumnOperator):
    """Makes insertions of changes."""

    def __init__(self, spec: ToChangelogSpec):
        self._name = spec.column
        codes = dict(spec.codes)
        self._codes = pa.array([codes.get(kind) for kind in RowKind], pa.string())

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the rows whose kinds have a code."""
        kinds = np.zeros(len(batch), np.int8) if batch.kinds is None else batch.kinds
        codes = self._codes.take(pa.array(kinds))
        data = batch.data
        names = [self._name, *data.schema.names]
        rows = pa.RecordBatch.from_arrays([codes, *data.columns], names=names)
        made = ColumnBatch(rows, None, None if batch.rowtime is None else batch.rowtime + 1)
        if codes.null_count:
            made = made.filter(codes.is_valid())
        if len(made):
            self.emit(made)


@dataclass(frozen=True)
class FromChangelogSpec(OperatorSpec):
    """Emits each row as the change whose code it has in a column, without that column."""

    column: int
    codes: tuple[tuple[str, RowKind], ...]

    def create(self, runtime: OperatorRuntime) -> FromChangelogOperator:
        """Returns a new operator for one subtask."""
        return FromChangelogOperator(self)


class FromChangelogOperator(ColumnOperator):
    """Makes changes of rows."""

    def __init__(self, spec: FromChangelogSpec):
        self._column = spec.column
        self._codes = pa.array([code for code, _ in spec.codes], pa.string())
        self._kinds = np.array([kind.value for _, kind in spec.codes], np.int8)

    def process_columns(self, batch: ColumnBatch) -> None:
        """Emits the rows with their kinds."""
        codes = batch.data.column(self._column)
        if codes.null_count:
            raise EvaluationError("Received NULL op code. Every changelog row must carry an operation code.")
        if pa.types.is_dictionary(codes.type):
            codes = codes.dictionary_decode()
        places = pc.index_in(codes, value_set=self._codes)
        if places.null_count:
            unknown = codes.filter(places.is_null())[0].as_py()
            known = ", ".join(self._codes.to_pylist())
            raise EvaluationError(f"Received invalid op code '{unknown}'. Defined op codes are: [{known}].")
        kinds = self._kinds[places.to_numpy(zero_copy_only=False)]
        kept = [index for index in range(batch.data.num_columns) if index != self._column]
        rowtime = batch.rowtime
        if rowtime is not None:
            rowtime = kept.index(rowtime)
        self.emit(ColumnBatch(batch.data.select(kept), kinds if kinds.any() else None, rowtime))
