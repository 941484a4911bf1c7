"""A job as REST, Prometheus and the command line show it."""
