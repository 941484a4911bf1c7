"""Programs drawn at random, run in many ways, and checked against an oracle.

See ``docs/testing.md``.
"""
