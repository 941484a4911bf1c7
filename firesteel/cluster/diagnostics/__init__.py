"""What a JobManager answers about its jobs and machines: metrics, flame graphs, state by key, logs."""
