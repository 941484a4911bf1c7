"""The name of a side output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firesteel.api.generics import Generic, T
from firesteel.moved_modules import stored_as

if TYPE_CHECKING:
    from firesteel.common.typeinfo import TypeInformation

__all__ = ["OutputTag"]


@stored_as("firesteel.common.output_tag")
class OutputTag(Generic[T]):
    """Names a side output; a function sends to it with ``yield tag, value``."""

    __slots__ = ("tag_id", "type_info")

    def __init__(self, tag_id: str, type_info: TypeInformation | None = None):
        if not isinstance(tag_id, str) or not tag_id:
            raise ValueError("OutputTag tag_id must be a non-empty string")
        self.tag_id = tag_id
        self.type_info = type_info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and other.tag_id == self.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r})"
