"""The window operator: a general one, and a fast one for windows aligned in event time."""

from __future__ import annotations

from firesteel.runtime.operators.base import StreamOperator
from firesteel.runtime.operators.specs import WindowSpec
from firesteel.runtime.operators.window.aligned import AlignedWindowOperator, alignment_of
from firesteel.runtime.operators.window.operator import WindowOperator

__all__ = ["AlignedWindowOperator", "WindowOperator", "create_window_operator"]


def create_window_operator(spec: WindowSpec, keeps_objects: bool = True) -> StreamOperator:
    """The fastest operator that can run a window spec; ``keeps_objects`` as of the state backend it will have."""
    aligned = keeps_objects and alignment_of(spec) is not None
    operator = AlignedWindowOperator(spec) if aligned else WindowOperator(spec)
    operator.user_function = spec.window_function
    return operator
