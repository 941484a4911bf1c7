"""Errors for a connector that violates its contract."""

from __future__ import annotations

import unittest

__all__ = ["CheckSkipped", "ConformanceError"]


class ConformanceError(AssertionError):
    """A connector violates a rule of its interface; the message names the rule, and the effect on users."""


class CheckSkipped(unittest.SkipTest):
    """A check that does not apply to a connector, and why."""
