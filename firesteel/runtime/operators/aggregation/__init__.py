"""Aggregation of keyed streams in bundles: before the exchange, in several stages, or in mini-batches."""
