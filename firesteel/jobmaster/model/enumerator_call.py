"""A call of a split enumerator that runs outside the JobMaster's thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["EnumeratorCall"]


@dataclass(frozen=True)
class EnumeratorCall:
    """A call that an enumerator has requested in another thread."""

    operator_id: str
    number: int
    call: Callable[[], Any]
    delay_ms: int

    def make(self) -> tuple[Any, Exception | None]:
        """What it gives, or None and what it raises."""
        try:
            return self.call(), None
        except Exception as error:  # noqa: BLE001 - a connector may raise anything; its handler decides
            return None, error
        except BaseException as error:  # noqa: BLE001 - a connector may even exit
            return None, RuntimeError(f"{type(error).__name__}: {error}")
