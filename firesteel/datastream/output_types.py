"""Type hints as users give them."""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import TypeInformation, Types

__all__ = ["to_type_info"]


def to_type_info(output_type: Any) -> TypeInformation | None:
    """The type a hint stands for; a list of types is a row of them, None is unknown."""
    if output_type is None or isinstance(output_type, TypeInformation):
        return output_type
    if isinstance(output_type, list):
        return Types.ROW(output_type)
    raise TypeError(
        f"output_type must be None, a TypeInformation such as Types.INT(), or a list of them, got {output_type!r}."
    )
