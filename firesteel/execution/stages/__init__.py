"""Stage execution, shared by batches and epochs: tasks that read and write rows of a blocking exchange."""
