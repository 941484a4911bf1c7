"""A whole cluster in one process, one thread and virtual time: what runs next and what breaks is drawn from a seed."""
