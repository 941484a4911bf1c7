"""Jobs of plans, and their results."""
