"""The nodes of bound expressions, and the errors of expressions."""
