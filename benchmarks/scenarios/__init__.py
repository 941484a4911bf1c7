"""Cases that run to their end and give figures of their own: checkpoints, state, recovery."""
