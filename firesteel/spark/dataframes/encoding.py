"""Converts records to Arrow batches, with an error that names a value that does not fit its column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firesteel.spark.dataframes.errors import DataFrameError
from firesteel.types.arrow_encoding import ArrowBatchEncoder, preview

__all__ = ["ArrowEncoder", "RecordMismatchError"]


class RecordMismatchError(DataFrameError):
    """A record that does not fit the DataFrame's schema; ``column`` is None if it is the record as a whole."""

    def __init__(self, message: str, *, record: str, column: str | None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.record = record
        self.column = column


class ArrowEncoder(ArrowBatchEncoder):
    """Encodes the records of a DataFrame; see ArrowBatchEncoder for what they may be."""

    def encode(self, records: Sequence[Any]) -> bytes:
        """The records as one batch, in Arrow's format of messages, without the schema."""
        encoded: bytes = self.to_batch(records).serialize().to_pybytes()
        return encoded

    def mismatch(self, record: Any, column: str | None, problem: str) -> RecordMismatchError:
        """The error that names what does not fit."""
        text = preview(record)
        where = "the DataFrame's columns" if column is None else f"column '{column}'"
        return RecordMismatchError(
            f"The record {text} does not fit {where}: {problem.rstrip('.')}.",
            record=text,
            column=column,
            hint=f"The columns are {self._description}.",
        )
