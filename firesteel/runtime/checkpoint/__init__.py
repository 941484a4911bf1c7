"""Checkpoints inside a slot: barriers, snapshots, state files, and the handles that name them."""
