"""Formats of messages and files."""
