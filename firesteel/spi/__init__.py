"""What a connector implements: sources, sinks and their parts."""
