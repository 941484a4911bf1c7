"""The name of a side output."""

from firesteel.common.output_tag import OutputTag

__all__ = ["OutputTag"]
