"""The source of generated records."""

from firesteel.connectors.datagen import DataGeneratorSource, GeneratorFunction
from firesteel.connectors.rate_limiter import RateLimiterStrategy

__all__ = ["DataGeneratorSource", "GeneratorFunction", "RateLimiterStrategy"]
