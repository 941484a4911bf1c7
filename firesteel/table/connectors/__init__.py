"""The connectors of tables: one module for each."""
