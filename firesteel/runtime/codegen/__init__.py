"""Generated loops, and the analysis of user functions that decides what is generated."""
