"""Failures that lead back to a checkpoint with something in flight."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.elements import Watermark, WatermarkStatus
from firesteel.runtime.model.state_handles import ChannelStateHandle, InlineBytes
from firesteel.testing.programs.running.faults import Fault, ProgramFault, Trip
from firesteel.testing.programs.running.in_flight import in_flight

IDLE, ACTIVE = WatermarkStatus(idle=True), WatermarkStatus(idle=False)


def _channel(*items: Any, producer: int = 0, at_producer: bool = False) -> ChannelStateHandle:
    return ChannelStateHandle("a->b#0", producer, 0, at_producer, InlineBytes(pickle.dumps(list(items))))


def _checkpoint(directory: Path, number: int, *channels: ChannelStateHandle) -> Path:
    checkpoint = directory / "job" / f"chk-{number}"
    checkpoint.mkdir(parents=True)
    metadata = CheckpointMetadata(
        checkpoint_id=number, job_id="job", job_name="", timestamp=0, kind=SnapshotKind.CHECKPOINT, channels=channels
    )
    (checkpoint / "_metadata").write_bytes(metadata.to_bytes(str(checkpoint)))
    return checkpoint


@pytest.mark.parametrize(
    ("channels", "expected"),
    [
        ((), set()),
        ((_channel(b"batch"),), {"records"}),
        ((_channel(b"batch", Watermark(7)), _channel(IDLE, producer=1)), {"records", "watermark", "idle"}),
        ((_channel(IDLE, ACTIVE),), set()),
        ((_channel(ACTIVE, at_producer=True), _channel(IDLE)), set()),
        ((_channel(IDLE, at_producer=True), _channel(ACTIVE)), {"idle"}),
        ((_channel(IDLE), _channel(ACTIVE, producer=1)), {"idle"}),
    ],
)
def test_what_a_checkpoint_has_in_flight(
    channels: tuple[ChannelStateHandle, ...], expected: set[str], tmp_path: Path
) -> None:
    assert in_flight(_checkpoint(tmp_path, 3, *channels)) == expected


def test_a_checkpoint_that_is_gone_has_nothing_in_flight(tmp_path: Path) -> None:
    assert in_flight(tmp_path / "job" / "chk-3") == set()


def test_it_fails_so_many_times_at_checkpoints_with_something_in_flight(tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    for number in range(1, 9):
        _checkpoint(checkpoints, number, _channel(b"batch", IDLE) if number % 2 == 0 else _channel(b"batch"))
    token = tmp_path / "token"
    token.touch()
    failed = []
    for number in range(1, 9):
        trip = Trip(Fault("flight", "0.on_complete", 3, holds="idle"), token, checkpoints)
        try:
            trip.complete(number)
        except ProgramFault:
            failed.append(number)
            assert not token.exists()
    assert failed == [2, 4, 6]
