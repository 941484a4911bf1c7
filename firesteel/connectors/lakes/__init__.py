"""What the connectors of table formats (Iceberg, Delta Lake) share."""
