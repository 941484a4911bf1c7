"""The Dispatcher: accepts jobs, keeps them across restarts, runs them, and records how they ended."""
