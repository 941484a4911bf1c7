"""Sources and sinks, under the names PyFlink has for them.

Connectors that require an extra are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from firesteel.datastream.connectors.base import DeliveryGuarantee, Sink, Source
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileEnumeratorProvider,
    FileSink,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource

if TYPE_CHECKING:
    from firesteel.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
    from firesteel.datastream.connectors.kafka import KafkaRecordDeserializationSchema, KafkaSource

__all__ = [
    "BucketAssigner",
    "DeliveryGuarantee",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "JdbcConnectionOptions",
    "JdbcExecutionOptions",
    "JdbcSink",
    "KafkaRecordDeserializationSchema",
    "KafkaSource",
    "NumberSequenceSource",
    "OutputFileConfig",
    "RollingPolicy",
    "Sink",
    "Source",
    "StreamFormat",
]

_LATER_LOADED = {
    "JdbcConnectionOptions": "jdbc",
    "JdbcExecutionOptions": "jdbc",
    "JdbcSink": "jdbc",
    "KafkaRecordDeserializationSchema": "kafka",
    "KafkaSource": "kafka",
}


def __getattr__(name: str) -> Any:
    module = _LATER_LOADED.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER_LOADED})
