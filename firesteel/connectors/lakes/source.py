"""The source of a lake's table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, ClassVar

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.lakes.columns import ColumnRows
from firesteel.connectors.lakes.enumerator import LakeEnumerator, LakeEnumeratorState
from firesteel.connectors.lakes.reader import LakeReader
from firesteel.connectors.lakes.scan import LakeScan, LakeSplit
from firesteel.spi.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from firesteel.types.arrow_decoding import ArrowRecords, record_type
from firesteel.types.internal import columns_schema

__all__ = ["LakeSource"]


class LakeSource(Source[LakeSplit]):
    """Reads the rows of a table: Rows, or ColumnRows without ``emits_rows``.

    Each enumerator and reader has a connection of its own.
    """

    name: ClassVar[str] = "Lake Source"
    emits_own_records = True

    def __init__(self, scan: LakeScan, *, emits_rows: bool = True) -> None:
        self.scan = scan
        self.emits_rows = emits_rows

    def get_produced_type(self) -> TypeInformation:
        """The type of the rows."""
        return record_type(columns_schema(self.scan.row_type))

    def get_boundedness(self) -> Boundedness:
        """Whether it reads one version of the table, or goes on with later ones."""
        return Boundedness.BOUNDED if self.scan.interval_ms is None else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator[LakeSplit]:
        """An enumerator that begins where the scan says."""
        return LakeEnumerator(context, deepcopy(self.scan))

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: LakeEnumeratorState
    ) -> SplitEnumerator[LakeSplit]:
        """An enumerator that goes on behind the version that was reached."""
        return LakeEnumerator(context, deepcopy(self.scan), state)

    def create_reader(self, context: ReaderContext) -> SourceReader[LakeSplit]:
        """A reader of files."""
        decode: Callable[[ColumnRows], Sequence[Any]] | None = None
        if self.emits_rows:
            records = ArrowRecords(columns_schema(self.scan.row_type))
            decode = lambda rows: records.decode(rows.data)
        return LakeReader(context, deepcopy(self.scan), decode)
