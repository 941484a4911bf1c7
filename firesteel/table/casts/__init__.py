"""CAST and TRY_CAST: which types can be cast to which, and how values are."""
