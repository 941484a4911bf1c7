"""The source of a range of numbers."""

from firesteel.connectors.number_sequence import NumberSequenceSource

__all__ = ["NumberSequenceSource"]
