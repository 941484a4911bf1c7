"""Checkpoint coordinators, stores, handles and savepoints."""
