"""The grammar: one module for each family of nodes."""
