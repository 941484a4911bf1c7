"""Test kit for jobs: whole jobs without Spark, harnesses for single operators, and a manual clock.

- :func:`test_environment` runs a program in this process, :func:`collect` lists the records of a stream.
- :class:`TestingSource` plays a list of records with watermarks, pauses and failures in between.
- :class:`FakeClock` is processing time that stands still until the test moves it.
- :class:`KeyedProcessFunctionHarness` and its kin run one function, :class:`SinkHarness` a sink, :func:`harness_for`
  one operator of a program; all can take snapshots and go on from them.
- :func:`eventually` waits for something that another thread or process does.

See ``docs/testing.md`` for examples.
"""

from __future__ import annotations

from firesteel.testing.broadcast_harness import (
    BroadcastHarness,
    BroadcastProcessFunctionHarness,
    KeyedBroadcastProcessFunctionHarness,
)
from firesteel.testing.clock import FakeClock
from firesteel.testing.environment import collect, test_environment
from firesteel.testing.eventually import eventually
from firesteel.testing.function_harnesses import (
    AsyncFunctionHarness,
    CoProcessFunctionHarness,
    KeyedCoProcessFunctionHarness,
    KeyedProcessFunctionHarness,
    ProcessFunctionHarness,
    harness_for,
)
from firesteel.testing.harness import Emitted, OneInputHarness, OperatorHarness, Timer, TwoInputHarness
from firesteel.testing.sink_harness import SinkHarness
from firesteel.testing.snapshots import HarnessSnapshot
from firesteel.testing.source import ABORT, EOF, PAUSE, WATERMARK, At, InjectedFailure, TestingSource

__all__ = [
    "ABORT",
    "EOF",
    "PAUSE",
    "WATERMARK",
    "AsyncFunctionHarness",
    "At",
    "BroadcastHarness",
    "BroadcastProcessFunctionHarness",
    "CoProcessFunctionHarness",
    "Emitted",
    "FakeClock",
    "HarnessSnapshot",
    "InjectedFailure",
    "KeyedBroadcastProcessFunctionHarness",
    "KeyedCoProcessFunctionHarness",
    "KeyedProcessFunctionHarness",
    "OneInputHarness",
    "OperatorHarness",
    "ProcessFunctionHarness",
    "SinkHarness",
    "TestingSource",
    "Timer",
    "TwoInputHarness",
    "collect",
    "eventually",
    "harness_for",
    "test_environment",
]
