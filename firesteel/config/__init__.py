"""Configuration: options with Flink's keys, by owner, and the values that a job is configured with."""

# it exports names of this package, and is loaded first whichever of the two is imported
import firesteel.common  # noqa: F401
