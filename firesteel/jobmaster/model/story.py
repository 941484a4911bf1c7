"""Event history of a state machine, kept to explain an invalid transition."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from firesteel.common.errors import FiresteelError

__all__ = ["InvalidStatusTransitionError", "Story", "StoryEntry"]

_MAX_TEXT_LENGTH = 320
"""How much is kept of an entry."""


@dataclass(frozen=True, slots=True)
class StoryEntry:
    """One event or transition: its number, when, and what."""

    number: int
    at: int
    text: str

    def __str__(self) -> str:
        return f"#{self.number} at {self.at}: {self.text}"


class Story:
    """A bounded log; numbers go on when old entries fall out.

    >>> story = Story(size=2)
    >>> for text in ("start", "register", "deploy"):
    ...     story.add(7, text)
    >>> print(story)
    #1 at 7: register
    #2 at 7: deploy
    """

    def __init__(self, size: int = 200):
        self._entries: deque[StoryEntry] = deque(maxlen=size)
        self._next_number = 0

    def add(self, at: int, text: str) -> None:
        """Appends an entry."""
        brief = text if len(text) <= _MAX_TEXT_LENGTH else f"{text[:_MAX_TEXT_LENGTH]}…"
        self._entries.append(StoryEntry(self._next_number, at, brief))
        self._next_number += 1

    def entries(self) -> list[StoryEntry]:
        """What is kept, oldest first."""
        return list(self._entries)

    def __str__(self) -> str:
        return "\n".join(str(entry) for entry in self._entries)


class InvalidStatusTransitionError(FiresteelError):
    """An invalid transition of a state machine: a bug, reported with the events that led to it."""

    def __init__(self, what: str, story: Story):
        super().__init__(f"Invalid transition: {what}.\nThe story so far:\n{story}")
        self.story = story.entries()
