"""Stream operators: map, filter, reduce, process functions, windows, sources and sinks."""
