"""Small programs to read, run and change: ``python -m examples.word_count``."""
