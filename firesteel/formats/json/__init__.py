"""JSON messages."""
