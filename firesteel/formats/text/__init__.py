"""Files of lines."""
