"""How a chaos run waits, tells what happens, and does things later."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from tests.support.chaos.reader import Violation

__all__ = ["Timeline"]


class Timeline(ABC):
    """The time of a run since it began. ``say_to`` gets what happens, as it does."""

    poll_s: ClassVar[float]
    """How often a run looks around while it waits."""

    def __init__(self, say_to: Callable[[str], None]):
        self._say_to = say_to
        self._began = time.monotonic()
        self._later: list[tuple[float, Callable[[], Any]]] = []

    @abstractmethod
    def _tick(self) -> None:
        """Looks around; calls ``_do_what_is_due``."""

    def say(self, text: str) -> None:
        """Adds to the timeline."""
        self._say_to(f"[{self._now():7.2f}] {text}")

    def wait(self, seconds: float) -> None:
        """Lets time pass while the run goes on."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._tick()
            time.sleep(min(left, self.poll_s))

    def wait_for(self, condition: Callable[[], Any], what: str | Callable[[], str], deadline_s: float) -> Any:
        """Waits while the run goes on; returns what the condition says as soon as that is something."""
        end = time.monotonic() + deadline_s
        while True:
            self._tick()
            outcome = condition()
            if outcome:
                return outcome
            if time.monotonic() >= end:
                raise Violation(f"waited {deadline_s:.0f} s for {what if isinstance(what, str) else what()}")
            time.sleep(self.poll_s)

    def later(self, seconds: float, action: Callable[[], Any]) -> None:
        """Does something in a while."""
        self._later.append((time.monotonic() + seconds, action))

    def _do_what_is_due(self, now: float) -> None:
        for entry in [entry for entry in self._later if entry[0] <= now]:
            self._later.remove(entry)
            entry[1]()

    def _now(self) -> float:
        return round(time.monotonic() - self._began, 2)
