"""Windows of two streams: which records meet, computed from all records at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.testing.programs.oracle.flow import Flow, Record
from firesteel.testing.programs.oracle.windows import Span

__all__ = ["Meeting", "by_key", "meetings"]


@dataclass
class Meeting:
    """A window, and the records of both streams in it."""

    window: Span
    sides: tuple[list[Record], list[Record]] = field(default_factory=lambda: ([], []))


def by_key(
    flows: Sequence[Flow], selectors: Sequence[Callable[[Any], Any]]
) -> Iterator[tuple[list[Record], list[Record]]]:
    """Yields the records of both streams for each key."""
    groups: dict[Any, tuple[list[Record], list[Record]]] = {}
    for side, (flow, selector) in enumerate(zip(flows, selectors, strict=True)):
        for record in flow.records():
            groups.setdefault(selector(record.value), ([], []))[side].append(record)
    yield from groups.values()


def meetings(
    sides: Sequence[Sequence[Record]],
    assign: Callable[[Any, int | None, int], list[Span]],
    *,
    merging: bool,
) -> list[Meeting]:
    """Returns the windows of one key in the order of their ends; ``assign`` gives those of a record."""
    placed = [(span, side, record) for side in (0, 1) for record in sides[side] for span in _spans(assign, record)]
    found: list[Meeting] = []
    for span, side, record in sorted(placed, key=lambda each: each[0]):
        if found and (span == found[-1].window or (merging and span.start <= found[-1].window.end)):
            last = found[-1].window
            found[-1].window = Span(last.start, max(last.end, span.end))
        else:
            found.append(Meeting(span))
        found[-1].sides[side].append(record)
    return sorted(found, key=lambda meeting: meeting.window.end)


def _spans(assign: Callable[[Any, int | None, int], list[Span]], record: Record) -> list[Span]:
    return assign(record.value, record.time, 0)
