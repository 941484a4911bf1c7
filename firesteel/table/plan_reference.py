"""PlanReference: where a compiled plan is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["BytesContentPlanReference", "FilePlanReference", "JsonContentPlanReference", "PlanReference"]


class PlanReference:
    """Where a compiled plan is: ``PlanReference.from_file("plan.json")``."""

    @staticmethod
    def from_file(path: str | Path) -> FilePlanReference:
        """A plan in a file, which may be in an object store."""
        return FilePlanReference(str(path))

    @staticmethod
    def from_json_string(json_string: str) -> JsonContentPlanReference:
        """A plan as text."""
        return JsonContentPlanReference(json_string)

    @staticmethod
    def from_smile_bytes(smile_bytes: bytes) -> BytesContentPlanReference:
        """A plan in Flink's binary form, which Firesteel does not read."""
        return BytesContentPlanReference(smile_bytes)


@dataclass(frozen=True)
class FilePlanReference(PlanReference):
    """A plan in a file."""

    path: str

    def get_file(self) -> Path:
        """The path of the file."""
        return Path(self.path).resolve()

    def __str__(self) -> str:
        return f"Plan from file '{self.path}'"


@dataclass(frozen=True)
class JsonContentPlanReference(PlanReference):
    """A plan as text."""

    content: str

    def get_content(self) -> str:
        """The text."""
        return self.content

    def __str__(self) -> str:
        return f"Plan:\n{self.content}"


@dataclass(frozen=True)
class BytesContentPlanReference(PlanReference):
    """A plan in Flink's binary form."""

    content: bytes

    def get_content(self) -> bytes:
        """The bytes."""
        return self.content

    def __str__(self) -> str:
        return f"Plan of {len(self.content)} bytes"
