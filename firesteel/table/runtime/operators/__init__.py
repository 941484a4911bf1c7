"""The operators of SQL: one package for each family."""
