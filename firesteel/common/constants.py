"""Limits of Flink's 64-bit timestamps and the name of the main output."""

from __future__ import annotations

__all__ = ["DEFAULT_OUTPUT_TAG", "MAX_LONG_VALUE", "MIN_LONG_VALUE"]

MAX_LONG_VALUE = 0x7FFFFFFFFFFFFFFF
"""The largest 64-bit integer: also the timestamp of the last watermark."""

MIN_LONG_VALUE = -MAX_LONG_VALUE - 1
"""The smallest 64-bit integer: also "no timestamp" and "no watermark yet"."""

DEFAULT_OUTPUT_TAG = ""
"""The tag id of an operator's main output."""
