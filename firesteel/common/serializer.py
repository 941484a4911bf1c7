"""User-defined type serializers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import Generic, TypeVar

__all__ = ["TypeSerializer", "VoidNamespaceSerializer", "void"]

T = TypeVar("T")

void = b""
"""The namespace of state that has none."""


class TypeSerializer(ABC, Generic[T]):
    """Turns elements of one type into bytes and back."""

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None:
        """Writes one element to the stream."""

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T:
        """Reads one element from the stream."""

    def to_bytes(self, element: T) -> bytes:
        """One element's bytes."""
        stream = BytesIO()
        self.serialize(element, stream)
        return stream.getvalue()

    def from_bytes(self, data: bytes) -> T:
        """The element those bytes stand for."""
        return self.deserialize(BytesIO(data))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class VoidNamespaceSerializer(TypeSerializer[bytes]):
    """Writes nothing: state without windows needs no namespace."""

    def serialize(self, element: bytes, stream: BytesIO) -> None:
        """Writes nothing."""

    def deserialize(self, stream: BytesIO) -> bytes:
        """Reads nothing."""
        return void
