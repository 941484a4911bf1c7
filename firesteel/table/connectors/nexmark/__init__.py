"""The connector ``nexmark``: the events of the NEXMark benchmark, generated as columns."""

from firesteel.table.connectors.nexmark.factory import FACTORY

__all__ = ["FACTORY"]
