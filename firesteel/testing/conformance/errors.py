"""Errors for a connector that violates its contract."""

from __future__ import annotations

import unittest

__all__ = ["CheckSkipped", "ConformanceError"]


class ConformanceError(AssertionError):
    """A connector breaks a rule of its interface; the message says which, and what happens to its users."""


class CheckSkipped(unittest.SkipTest):
    """A check that does not apply to a connector, and why."""
