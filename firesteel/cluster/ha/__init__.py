"""High availability: leader election, and the store that a new leader recovers jobs from."""
