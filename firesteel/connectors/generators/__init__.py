"""Sources that generate their records."""
