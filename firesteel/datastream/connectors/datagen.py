"""The source of generated records, and what to generate them with."""

from firesteel.connectors.base.rate_limiter import RateLimiterStrategy
from firesteel.connectors.generators.datagen import DataGeneratorSource, GeneratorFunction
from firesteel.connectors.generators.datagen_fields import RowGenerator

__all__ = ["DataGeneratorSource", "GeneratorFunction", "RateLimiterStrategy", "RowGenerator"]
