"""What is shown of a stream in a notebook."""

from __future__ import annotations

from firesteel.graph.transformation import PhysicalTransformation, Transformation

__all__ = ["describe_stream"]

MAX_STEPS = 12


def describe_stream(transformation: Transformation, default_parallelism: int) -> list[tuple[str, object]]:
    """Name, type and parallelism of a stream, and the operators that lead to it. Nothing is executed."""
    known = transformation.output_type
    operators = [step for step in transformation.transitive_predecessors() if isinstance(step, PhysicalTransformation)]
    steps = [f"{step.name} ({step.parallelism or default_parallelism})" for step in operators[:MAX_STEPS]]
    if len(operators) > MAX_STEPS:
        steps.append(f"… and {len(operators) - MAX_STEPS} more")
    return [
        ("name", operators[0].name if operators else transformation.name),
        ("type", "any" if known is None else known),
        ("parallelism", (operators[0].parallelism if operators else None) or default_parallelism),
        ("plan", "\n← ".join(steps)),
    ]
