"""Window operators: a general one, and fast ones for windows aligned in event time."""
