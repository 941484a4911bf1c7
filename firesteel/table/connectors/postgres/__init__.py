"""The connectors ``jdbc`` and ``postgres-cdc``: tables of PostgreSQL."""
