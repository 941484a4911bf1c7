"""The expressions of the Table API: they build the trees that the SQL parser builds."""
