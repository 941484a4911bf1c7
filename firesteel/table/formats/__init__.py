"""The formats of tables: bytes of messages to columns, and columns to bytes."""
