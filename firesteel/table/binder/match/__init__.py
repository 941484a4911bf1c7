"""MATCH_RECOGNIZE: its clauses, and the expressions in them."""
