"""Input formats: bounded inputs cut into splits that are read record by record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["InputFormat"]


class InputFormat(ABC):
    """Describes a bounded input; opens nothing before :meth:`open`.

    PyFlink's class wraps a Java object; this one is implemented in Python.
    """

    @abstractmethod
    def create_input_splits(self, min_num_splits: int) -> list[Any]:
        """Divides the input into at least the given number of splits, if possible."""

    @abstractmethod
    def open(self, split: Any) -> None:
        """Starts reading one split."""

    @abstractmethod
    def reached_end(self) -> bool:
        """Whether the split has no further record."""

    @abstractmethod
    def next_record(self) -> Any:
        """The next record of the split."""

    def close(self) -> None:  # noqa: B027 - optional
        """Ends the split that was opened last."""
