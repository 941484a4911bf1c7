"""DDL: statements become objects of catalogs."""
