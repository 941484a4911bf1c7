"""EnvironmentSettings: what a table environment is created with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from firesteel.config import pipeline_options
from firesteel.config.configuration import Configuration

__all__ = ["EnvironmentSettings"]

DEFAULT_CATALOG = "default_catalog"
DEFAULT_DATABASE = "default_database"


@dataclass(frozen=True)
class EnvironmentSettings:
    """Settings of a table environment; they do not change after it is created.

    >>> EnvironmentSettings.in_batch_mode().is_streaming_mode()
    False
    """

    catalog_name: str = DEFAULT_CATALOG
    database_name: str = DEFAULT_DATABASE
    configuration: Configuration = field(default_factory=Configuration)

    @staticmethod
    def new_instance() -> Builder:
        """A builder of settings."""
        return Builder()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """The usual settings, for queries over streams."""
        return EnvironmentSettings.new_instance().in_streaming_mode().build()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """The usual settings, for queries over bounded tables."""
        return EnvironmentSettings.new_instance().in_batch_mode().build()

    def get_built_in_catalog_name(self) -> str:
        """The name of the first catalog."""
        return self.catalog_name

    def get_built_in_database_name(self) -> str:
        """The name of the database of the first catalog."""
        return self.database_name

    def is_streaming_mode(self) -> bool:
        """Whether queries run as streams."""
        return self.configuration.get(pipeline_options.RUNTIME_MODE) != "BATCH"

    def get_configuration(self) -> Configuration:
        """A copy of the configuration."""
        return Configuration(self.configuration)


class Builder:
    """Builds settings."""

    def __init__(self) -> None:
        self._settings = EnvironmentSettings()

    def with_configuration(self, config: Configuration) -> Builder:
        """Takes over the options of a configuration."""
        self._settings.configuration.add_all(config)
        return self

    def in_batch_mode(self) -> Builder:
        """Queries run over bounded tables."""
        self._settings.configuration.set(pipeline_options.RUNTIME_MODE, "BATCH")
        return self

    def in_streaming_mode(self) -> Builder:
        """Queries run over streams; the default."""
        self._settings.configuration.set(pipeline_options.RUNTIME_MODE, "STREAMING")
        return self

    def with_built_in_catalog_name(self, built_in_catalog_name: str) -> Builder:
        """The name of the first catalog, which is in memory."""
        self._settings = replace(self._settings, catalog_name=built_in_catalog_name)
        return self

    def with_built_in_database_name(self, built_in_database_name: str) -> Builder:
        """The name of the database of the first catalog."""
        self._settings = replace(self._settings, database_name=built_in_database_name)
        return self

    def build(self) -> EnvironmentSettings:
        """The settings."""
        configuration = Configuration(self._settings.configuration)
        if not configuration.contains(pipeline_options.RUNTIME_MODE):
            configuration.set(pipeline_options.RUNTIME_MODE, "STREAMING")
        return replace(self._settings, configuration=configuration)


EnvironmentSettings.Builder = Builder  # type: ignore[attr-defined]
