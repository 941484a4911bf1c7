"""Writers of each format for a FileSink."""
