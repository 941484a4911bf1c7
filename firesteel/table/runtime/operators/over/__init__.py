"""Functions over windows: OVER by event time, by processing time and by other columns, and sorts by time."""
