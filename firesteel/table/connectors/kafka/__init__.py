"""The connectors ``kafka`` and ``upsert-kafka``."""

from firesteel.table.connectors.kafka.factory import FACTORY

__all__ = ["FACTORY"]
