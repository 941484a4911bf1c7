"""Operators on column batches: their base class, calc, watermarks, and the borders to records."""
