"""Interfaces that user functions and the runtime share: state, its time-to-live, and side outputs."""
