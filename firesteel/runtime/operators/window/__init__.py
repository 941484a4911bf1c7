"""The window operator: a general one, and a fast one for windows aligned in event time."""

from __future__ import annotations

from firesteel.runtime.operators.base import StreamOperator
from firesteel.runtime.operators.specs import WindowSpec
from firesteel.runtime.operators.window.aligned import AlignedWindowOperator, alignment_of
from firesteel.runtime.operators.window.operator import WindowOperator

__all__ = ["AlignedWindowOperator", "WindowOperator", "create_window_operator"]


def create_window_operator(spec: WindowSpec) -> StreamOperator:
    """The fastest operator that can run a window spec."""
    return WindowOperator(spec) if alignment_of(spec) is None else AlignedWindowOperator(spec)
