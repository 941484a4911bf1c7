"""State backends, their files and their values."""
