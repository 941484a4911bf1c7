"""Rows as Arrow columns: batches, their form on the wire, and their exchange by key."""
