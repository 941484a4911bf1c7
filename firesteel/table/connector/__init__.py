"""What connectors of tables implement: factories, sources and sinks."""
