"""What the endpoints answer."""
