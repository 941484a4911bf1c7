"""What the connectors ``iceberg`` and ``delta`` share."""
