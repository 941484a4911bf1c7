"""Failure reports: from an exception in a task to the operator, the user's line and the key."""
