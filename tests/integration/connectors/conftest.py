"""Fakes of what a task and the JobMaster give a connector."""

from tests.support.fixtures.connectors import fakes

__all__ = ["fakes"]
