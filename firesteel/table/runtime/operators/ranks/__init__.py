"""Top-N, deduplication, LIMIT and sorts by time."""
