"""What batches and epochs share: tasks whose inputs and outputs are rows of a blocking exchange."""
