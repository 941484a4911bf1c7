"""The grammar: one class per part of it, each derived from the parts that it needs."""
