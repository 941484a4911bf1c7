"""What operators do with records."""
