"""Table environments: statements are executed here."""
