"""PyFlink's module of configuration options."""

from firesteel.config.option import ConfigOption, ConfigOptions, InvalidConfigurationError

__all__ = ["ConfigOption", "ConfigOptions", "InvalidConfigurationError"]
