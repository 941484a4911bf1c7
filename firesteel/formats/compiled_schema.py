"""Base of schemas that generate a function for their type."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar

from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import RowTypeInfo, from_logical
from firesteel.types.logical import RowType

__all__ = ["CompiledSchema", "require_row_type"]

T = TypeVar("T")


class CompiledSchema(Generic[T]):
    """A schema that builds what it works with once, in the task; what it built is not sent along with it."""

    _built: T | None = None

    @abstractmethod
    def _build(self) -> T:
        """What the schema works with."""

    @property
    def _compiled(self) -> T:
        if self._built is None:
            self._built = self._build()
        return self._built

    def open(self) -> None:
        """Builds it before the first message."""
        _ = self._compiled

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_built"}


def require_row_type(type_info: Any, setting: str) -> RowTypeInfo:
    """The type if it is one of rows, else an error that names the setting it was given to.

    It may be given as ``Types.ROW_NAMED(…)`` or ``DataTypes.ROW(…)``.
    """
    if isinstance(type_info, RowType):
        type_info = from_logical(type_info)
    if isinstance(type_info, RowTypeInfo):
        return type_info
    raise InvalidProgramError(
        f"{setting} needs the type of a row, got {type_info}.",
        hint='For example Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()]).',
    )
