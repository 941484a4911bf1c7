"""PostgreSQL as source and sink."""
