"""State handles of every kind, for tests that only pass them on."""

from __future__ import annotations

from hypothesis import strategies as st

from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import (
    BROADCAST,
    CANONICAL,
    SPLIT,
    UNION,
    ChannelStateHandle,
    FileSegment,
    InlineBytes,
    KeyedPart,
    KeyedStateHandle,
    OperatorStateHandle,
    OperatorSubtaskState,
    StateBytes,
    StateMeta,
)

__all__ = ["checkpoint_of", "metadata"]


def checkpoint_of(*data: StateBytes, checkpoint_id: int = 1, **settings: object) -> CheckpointMetadata:
    """A checkpoint whose only operator has one state for each handle."""
    state = OperatorSubtaskState(
        operator=tuple(OperatorStateHandle(f"list-{n}", SPLIT, 1, each) for n, each in enumerate(data))
    )
    fields: dict[str, object] = {
        "checkpoint_id": checkpoint_id,
        "job_id": "0123456789abcdef",
        "job_name": "a job",
        "timestamp": 1_700_000_000_000,
        "kind": SnapshotKind.CHECKPOINT,
        "operators": (OperatorState("op-1", "my-uid", "Map", 1, 128, {0: state}),),
        **settings,
    }
    return CheckpointMetadata(**fields)  # type: ignore[arg-type]


_names = st.text(min_size=1, max_size=12)
_numbers = st.integers(0, 2**40)
_file_names = st.text("abcdef0123456789-_.é ", min_size=1, max_size=12).filter(lambda name: name.strip(".") != "")


def _paths(directory: str) -> st.SearchStrategy[str]:
    own = st.builds(lambda name: f"{directory}/{name}", _file_names)
    shared = st.builds(lambda name: f"{directory.rpartition('/')[0]}/shared/{name}", _file_names)
    others = st.builds(lambda name: f"/elsewhere/{name}", _file_names) | st.builds(
        lambda name: f"s3://other-bucket/{name}", _file_names
    )
    return own | shared | others


def metadata(directory: str) -> st.SearchStrategy[CheckpointMetadata]:
    """Any metadata in that directory."""
    segments = st.builds(FileSegment, _paths(directory), _numbers, _numbers, st.text("0123456789abcdef", min_size=32))
    data = segments | st.builds(InlineBytes, st.binary(max_size=40))
    index = st.none() | st.lists(st.tuples(_numbers, _numbers, _numbers), max_size=3).map(tuple)
    keyed = st.builds(
        KeyedStateHandle,
        format=st.sampled_from([CANONICAL, "hashmap", "rocksdb"]),
        key_groups=st.builds(KeyGroupRange, st.integers(0, 100), st.integers(100, 200)),
        parts=st.lists(st.builds(KeyedPart, _names, data, index), max_size=3).map(tuple),
        states=st.lists(
            st.builds(StateMeta, _names, _names, st.none() | _names, st.booleans(), _numbers), max_size=3
        ).map(tuple),
    )
    lists = st.builds(OperatorStateHandle, _names, st.sampled_from([SPLIT, UNION, BROADCAST]), _numbers, data)
    watermarks = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)
    subtask = st.builds(OperatorSubtaskState, st.none() | keyed, st.lists(lists, max_size=2).map(tuple), watermarks)
    operator = st.builds(
        OperatorState,
        operator_id=_names,
        uid=st.none() | _names,
        name=_names,
        parallelism=st.integers(1, 100),
        max_parallelism=st.integers(1, 32768),
        subtasks=st.dictionaries(st.integers(0, 5), subtask, max_size=2),
        coordinator=st.none() | data,
        finished=st.frozensets(st.integers(0, 5)),
    )
    channel = st.builds(ChannelStateHandle, _names, _numbers, _numbers, st.booleans(), data)
    properties = st.dictionaries(_names, st.none() | st.booleans() | _numbers | _names | st.lists(_numbers), max_size=3)
    return st.builds(
        CheckpointMetadata,
        checkpoint_id=_numbers,
        job_id=_names,
        job_name=_names,
        timestamp=_numbers,
        kind=st.sampled_from(SnapshotKind),
        operators=st.lists(operator, max_size=2).map(tuple),
        channels=st.lists(channel, max_size=2).map(tuple),
        properties=properties,
    )
