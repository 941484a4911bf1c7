"""Logical plans: what a query computes, as relations over relations."""
