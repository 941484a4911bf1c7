"""Built-in functions: one definition each, with type inference and bodies for columns, rows and Spark SQL."""
