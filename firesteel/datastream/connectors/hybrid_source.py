"""The source that reads several sources one after the other."""

from firesteel.connectors.hybrid.source import HybridSource, HybridSourceBuilder, SourceFactory, SourceSwitchContext

__all__ = ["HybridSource", "HybridSourceBuilder", "SourceFactory", "SourceSwitchContext"]
