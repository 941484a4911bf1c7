"""Functions over windows: OVER by event time and by processing time, and sorts by time."""
