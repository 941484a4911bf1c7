"""Optimized plans become streams: one module for each family of nodes."""
