"""The source of a range of numbers."""

from firesteel.connectors.generators.number_sequence import NumberSequenceSource

__all__ = ["NumberSequenceSource"]
