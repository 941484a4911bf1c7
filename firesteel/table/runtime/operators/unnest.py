"""Unnest: each row once for each element of a collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.table.bound.nodes import Expression
from firesteel.table.bound.session import Session
from firesteel.table.evaluation.vector_codegen import compile_vector
from firesteel.table.user_functions.scope import scoped
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema
from firesteel.types.logical import ArrayType, FieldsType, MapType, RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["UnnestOperator", "UnnestSpec"]


@dataclass(frozen=True)
class UnnestSpec(OperatorSpec):
    """Emits the columns of each row, and of an element of its collection."""

    collection: Expression
    with_ordinality: bool
    keeps_rows: bool
    condition: Expression | None
    row_type: RowType
    rowtime: int | None
    session: Session

    def create(self, runtime: OperatorRuntime) -> UnnestOperator:
        """Returns a new operator for one subtask."""
        return UnnestOperator(self)


class UnnestOperator(ColumnOperator):
    """Gathers rows by the lengths of their collections, and the elements as they lie in their column."""

    def __init__(self, spec: UnnestSpec):
        self._spec = spec
        self._schema = columns_schema(spec.row_type)

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        spec = self._spec
        session = scoped(self, spec.session)
        self._evaluate = compile_vector([spec.collection], session)
        self._is_true = None if spec.condition is None else compile_vector([spec.condition], session)

    def process_columns(self, batch: ColumnBatch) -> None:
        import numpy as np

        spec = self._spec
        (array,) = self._evaluate(batch.data.columns, len(batch))
        if hasattr(array, "combine_chunks"):
            array = array.combine_chunks()
        type_ = spec.collection.type
        # a row that is NULL is no element
        has_none = isinstance(type_, ArrayType) and isinstance(type_.element_type, FieldsType)
        has_none = has_none and array.values.null_count > 0
        are_all = self._is_true is None and not has_none
        offsets = array.offsets.to_numpy()
        lengths = np.diff(offsets)
        lengths[array.is_null().to_numpy(zero_copy_only=False)] = 0
        parents, places, ordinals = _positions(offsets[:-1], lengths, spec.keeps_rows and are_all)
        if isinstance(type_, ArrayType):
            values = [array.values]
        elif isinstance(type_, MapType):
            values = [array.keys, array.items]
        else:
            values = [array.keys]
            parents, places, ordinals = _repeated(array.items, parents, places)
        if not are_all:
            kept = np.ones(len(places), bool)
            if has_none:
                kept = values[0].is_valid().to_numpy(zero_copy_only=False)[places]
            if self._is_true is not None:
                (mask,) = self._is_true(self._beside(batch, values, parents, places, ordinals).data.columns, len(kept))
                kept = kept & mask.fill_null(False).to_numpy(zero_copy_only=False)
            parents, places, ordinals = parents[kept], places[kept], ordinals[kept]
            if spec.keeps_rows:
                parents, places, ordinals = _with_rows_alone(len(batch), parents, places, ordinals)
        self.emit(self._beside(batch, values, parents, places, ordinals))

    def _beside(self, batch: ColumnBatch, values: list[Any], parents: Any, places: Any, ordinals: Any) -> ColumnBatch:
        """The rows with the elements at some places beside them, or with nulls."""
        import numpy as np

        pa = require_pyarrow("SQL")
        spec = self._spec
        type_ = spec.collection.type
        taken = pa.array(places, mask=places < 0)
        columns = [value.take(taken) for value in values]
        if not isinstance(type_, MapType) and isinstance(type_.element_type, FieldsType):  # type: ignore[attr-defined]
            columns = columns[0].flatten()
        if spec.with_ordinality:
            columns.append(pa.array(ordinals.astype(np.int32), mask=places < 0))
        rows = batch.take(parents)
        data = pa.RecordBatch.from_arrays([*rows.data.columns, *columns], schema=self._schema)
        return ColumnBatch(data, rows.kinds, spec.rowtime)


def _positions(starts: Any, lengths: Any, keeps_rows: bool) -> tuple[Any, Any, Any]:
    """For each result its row, the place of its element, or -1, and the number of the element."""
    import numpy as np

    counts = np.maximum(lengths, 1) if keeps_rows else lengths
    parents = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    ordinals = np.arange(len(parents)) - first[parents]
    places = starts[parents] + ordinals
    places[lengths[parents] == 0] = -1
    return parents, places.astype(np.int64), ordinals + 1


def _repeated(counts: Any, parents: Any, places: Any) -> tuple[Any, Any, Any]:
    """The same for a multiset, whose elements occur several times."""
    import numpy as np

    times = np.ones(len(places), np.int64)
    there = places >= 0
    times[there] = counts.to_numpy(zero_copy_only=False)[places[there]]
    parents, places = np.repeat(parents, times), np.repeat(places, times)
    starts = np.flatnonzero(np.diff(parents, prepend=-1)) if len(parents) else parents
    lengths = np.diff(np.append(starts, len(parents)))
    return parents, places, np.arange(len(parents)) - np.repeat(starts, lengths) + 1


def _with_rows_alone(count: int, parents: Any, places: Any, ordinals: Any) -> tuple[Any, Any, Any]:
    """The same with a place of -1 for each row that has none."""
    import numpy as np

    alone = np.setdiff1d(np.arange(count), parents)
    order = np.argsort(np.append(parents, alone), kind="stable")
    none = np.full(len(alone), -1)
    parents, places, ordinals = (
        np.append(found, added)[order] for found, added in ((parents, alone), (places, none), (ordinals, none))
    )
    return parents, places, ordinals
