"""The connector ``upsert-kafka``; a module of its own, since connectors are found by module."""

from firesteel.table.connectors.kafka.factory import UPSERT_FACTORY as FACTORY

__all__ = ["FACTORY"]
