"""What tests of the command line share: no cluster of the user's is found, and one in this process can be had."""

from tests.support.fixtures.cli import cluster, state_directory

__all__ = ["cluster", "state_directory"]
