"""How a FileSink writes records in each format."""
