"""A source of the rows of one column batch."""

from __future__ import annotations

from typing import ClassVar

from firesteel.connectors.generators.collection import CollectionSource
from firesteel.runtime.columns.batch import ColumnBatch

__all__ = ["BatchSource"]


class BatchSource(CollectionSource):
    """Emits the rows of a batch in order; they travel with the program."""

    name: ClassVar[str] = "Values"
    emits_columns = True

    def __init__(self, batch: ColumnBatch, parallel: bool = False) -> None:
        super().__init__((), parallel)
        self.elements = batch  # type: ignore[assignment] # slices and a length are all that readers use
