"""Parallelism and maximum parallelism of operators."""

from __future__ import annotations

from firesteel.common.errors import InvalidProgramError
from firesteel.graph.transformation import Transformation

__all__ = ["MAX_PARALLELISM_LIMIT", "default_max_parallelism", "describe", "resolve_parallelism"]

MAX_PARALLELISM_LIMIT = 1 << 15
"""Flink's upper bound for max parallelism, the number of key groups."""

_MIN_DEFAULT = 128


def default_max_parallelism(parallelism: int) -> int:
    """One and a half times the parallelism, rounded up to a power of two, within 128 to 32768, as in Flink.

    >>> [default_max_parallelism(p) for p in (1, 85, 86, 200, 32768)]
    [128, 128, 256, 512, 32768]
    """
    wanted = parallelism + parallelism // 2
    return min(max(1 << (wanted - 1).bit_length(), _MIN_DEFAULT), MAX_PARALLELISM_LIMIT)


def describe(transformation: Transformation) -> str:
    """The operator as errors name it: with its uid and the user's line, where known."""
    text = f"'{transformation.name}'"
    if transformation.uid is not None:
        text += f" (uid '{transformation.uid}')"
    if transformation.defined_at is not None:
        text += f" defined at {transformation.defined_at}"
    return text


def resolve_parallelism(
    transformation: Transformation, default: int, job_max_parallelism: int | None
) -> tuple[int, int]:
    """The operator's parallelism and max parallelism; refuses what cannot work."""
    parallelism = default if transformation.parallelism is None else transformation.parallelism
    if parallelism < 1:
        raise InvalidProgramError(
            f"The parallelism of operator {describe(transformation)} is {parallelism}.",
            hint="The parallelism of an operator must be at least 1.",
        )
    maximum = transformation.max_parallelism
    if maximum is None:
        maximum = job_max_parallelism
    if maximum is None:
        maximum = default_max_parallelism(parallelism)
    if not 1 <= maximum <= MAX_PARALLELISM_LIMIT:
        raise InvalidProgramError(
            f"The max parallelism of operator {describe(transformation)} is {maximum}.",
            hint=f"Max parallelism must be between 1 and {MAX_PARALLELISM_LIMIT}.",
        )
    if parallelism > maximum:
        raise InvalidProgramError(
            f"The parallelism {parallelism} of operator {describe(transformation)} is higher than its "
            f"max parallelism {maximum}.",
            hint="Lower the parallelism, or raise the max parallelism with set_max_parallelism() or "
            "'pipeline.max-parallelism' (state of earlier runs cannot be restored after that).",
        )
    return parallelism, maximum
