"""Rules that rewrite joins and subqueries."""
