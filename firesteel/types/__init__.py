"""Types of records and state, and what they are in Arrow."""
