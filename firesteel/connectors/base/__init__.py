"""Base classes for custom connectors: they do the bookkeeping, a subclass defines how to read or write.

- :class:`IteratorSource`: a list of splits, and a generator that reads one of them from a position on.
- :class:`TwoPhaseCommitSink`: exactly-once, by transactions that are tied to checkpoints.
- :class:`AtLeastOnceSink`: writes, and has written when a checkpoint is taken.

Where these do not fit there are the interfaces themselves, in :mod:`firesteel.spi.source`.
"""

from __future__ import annotations

from firesteel.connectors.base.at_least_once_sink import AtLeastOnceSink
from firesteel.connectors.base.iterator_enumerator import IteratorEnumeratorState, IteratorSourceEnumerator
from firesteel.connectors.base.iterator_reader import IteratorSourceReader
from firesteel.connectors.base.iterator_source import IteratorSource
from firesteel.connectors.base.iterator_split import IteratorSourceError, IteratorSourceSplit
from firesteel.connectors.base.two_phase_commit_sink import PreparedTransaction, TwoPhaseCommitSink

__all__ = [
    "AtLeastOnceSink",
    "IteratorEnumeratorState",
    "IteratorSource",
    "IteratorSourceEnumerator",
    "IteratorSourceError",
    "IteratorSourceReader",
    "IteratorSourceSplit",
    "PreparedTransaction",
    "TwoPhaseCommitSink",
]
