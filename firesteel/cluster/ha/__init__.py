"""Who leads, and what must survive whoever did."""
