"""PyFlink's module of the Configuration."""

from firesteel.config.configuration import Configuration

__all__ = ["Configuration"]
