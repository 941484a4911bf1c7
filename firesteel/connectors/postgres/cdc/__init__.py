"""Change data capture: the rows of PostgreSQL tables, then every change of them."""
