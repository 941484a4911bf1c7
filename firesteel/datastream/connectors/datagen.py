"""The source of generated records, and what to generate them with."""

from firesteel.connectors.datagen import DataGeneratorSource, GeneratorFunction
from firesteel.connectors.datagen_fields import RowGenerator
from firesteel.connectors.rate_limiter import RateLimiterStrategy

__all__ = ["DataGeneratorSource", "GeneratorFunction", "RateLimiterStrategy", "RowGenerator"]
