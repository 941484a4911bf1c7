"""Tasks whose inputs and outputs are rows of a blocking exchange: those of a batch job, and of an epoch."""
