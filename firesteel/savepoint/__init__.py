"""What is in a savepoint or checkpoint, and whether a program could start from it; knows nothing of Spark."""
