"""High availability: leaders, and calls that fail."""
