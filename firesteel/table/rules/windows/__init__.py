"""Rules of windows."""
