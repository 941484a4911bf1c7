"""Configuration: options with Flink's keys, by owner, and the values that a job is configured with."""
