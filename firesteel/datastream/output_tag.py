"""The name of a side output."""

from firesteel.api.output_tag import OutputTag

__all__ = ["OutputTag"]
