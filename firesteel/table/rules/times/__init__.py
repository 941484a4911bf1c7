"""Rules about time attributes."""
