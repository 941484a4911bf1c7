"""Rules for types: common types, implicit casts, decimals, and the results of functions."""
