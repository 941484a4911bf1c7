"""What inspection says of a savepoint: from its metadata alone, by reading all of it, and when it is damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from firesteel.api.state import ValueStateDescriptor
from firesteel.common.errors import StateIncompatibleError
from firesteel.common.windows import TimeWindow
from firesteel.runtime.checkpoint.files import StateFileReader
from firesteel.runtime.checkpoint.storage import load
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import key_group_of
from firesteel.runtime.model.state_handles import StateMeta
from firesteel.savepoint.inspection import count_states, describe, list_keys, verify
from firesteel.savepoint.keyed_state import Entry, read_entries, restored_backend, slices
from firesteel.savepoint.metadata_contents import find_operator
from tests.support.checkpoints.savepoints import JOB_ID, Keyed, Operator, Timers, backend_operator, write_savepoint

NUMBERS = {number: f"value of {number}" for number in range(300)}


@pytest.fixture
def path(tmp_path: Path) -> str:
    windows = {(key, TimeWindow(start, start + 10)): [key] for key in "ab" for start in (0, 10, 20)}
    operators = [
        Operator(
            "Numbers",
            "numbers",
            [
                Keyed(StateMeta("number", "value", "String"), NUMBERS),
                Timers("user-timers/event", [(5, 1, None), (6, 1, None), (7, 2, None)]),
            ],
        ),
        Operator("Windows", None, [Keyed(StateMeta("window-contents", "list"), windows, namespaces=True)]),
        Operator("Source: numbers", lists={"_splits": ("split", [["a", "b"], ["c"]])}, coordinator=b"12345"),
        Operator("Rules", "rules", lists={"rules": ("broadcast", [["x"], ["x"]])}),
        Operator("Map"),
    ]
    return write_savepoint(tmp_path / "savepoint", operators)


def states_of(description: dict[str, Any], operator: str) -> dict[str, dict[str, Any]]:
    found = next(described for described in description["operators"] if described["name"] == operator)
    return {state["name"]: state for state in (*found["keyed_states"], *found["operator_states"])}


def test_metadata_alone_tells_what_there_is(path: str) -> None:
    description = describe(load(path), path)
    assert description["job_name"] == "orders"
    assert description["job_id"] == JOB_ID
    assert description["kind"] == "savepoint"
    assert [operator["has_state"] for operator in description["operators"]] == [True, True, True, True, False]
    number = states_of(description, "Numbers")["number"]
    assert (number["kind"], number["type"], number["ttl"], number["entries"]) == ("value", "String", False, 300)
    assert (number["keys"], number["size"]) == (None, None)
    assert states_of(description, "Source: numbers")["_splits"]["items"] == 3
    assert states_of(description, "Rules")["rules"]["items"] == 1, "every subtask has the same"
    source = description["operators"][2]
    assert source["coordinator_size"] == 5
    assert [subtask["key_groups"] for subtask in description["operators"][0]["subtasks"]] == [[0, 63], [64, 127]]
    files = [name for name in Path(path).iterdir() if name.name != "_metadata"]
    assert description["files"] == len(files) > 0


def test_reading_all_state_counts_keys_and_entries(path: str) -> None:
    metadata = load(path)
    description = describe(metadata, path)
    with StateFileReader() as files:
        count_states(metadata, files, description)
    numbers = states_of(description, "Numbers")
    assert (numbers["number"]["keys"], numbers["number"]["entries"]) == (300, 300)
    timers = numbers["_timers/user-timers/event"]
    assert (timers["keys"], timers["entries"]) == (2, 3)
    windows = states_of(description, "Windows")["window-contents"]
    assert (windows["keys"], windows["entries"]) == (2, 6)
    written = sum(subtask["keyed_size"] for subtask in description["operators"][0]["subtasks"])
    assert 0.4 * written < numbers["number"]["size"] + timers["size"] <= written


def test_keys_are_listed_with_their_values(path: str) -> None:
    metadata = load(path)
    with StateFileReader() as files:
        rows = list_keys(metadata, files, "number", limit=1000)
        few = list_keys(metadata, files, "number", limit=3)
        windows = list_keys(metadata, files, "window-contents", limit=10)
        timers = list_keys(metadata, files, "_timers/user-timers/event", limit=10)
        with pytest.raises(StateIncompatibleError) as raised:
            list_keys(metadata, files, "numbre", limit=10)
    assert {row["key"]: row["value"] for row in rows} == {repr(key): repr(value) for key, value in NUMBERS.items()}
    assert len(few) == 3
    assert {row["namespace"] for row in windows} == {"[0, 10)", "[10, 20)", "[20, 30)"}
    assert sorted((row["key"], row["value"]) for row in timers) == [("1", "5"), ("1", "6"), ("2", "7")]
    assert raised.value.state == "numbre"
    assert "number" in str(raised.value.hint)


def test_a_changed_byte_and_a_missing_file_are_found(path: str) -> None:
    metadata = load(path)
    with StateFileReader() as files:
        assert verify(metadata, files) == []
    damaged, missing, *_ = sorted(metadata.files(), key=lambda name: -Path(name).stat().st_size)
    content = bytearray(Path(damaged).read_bytes())
    content[len(content) // 2] ^= 1
    Path(damaged).write_bytes(content)
    Path(missing).unlink()
    with StateFileReader() as files:
        problems = verify(metadata, files)
    assert len(problems) == 2
    assert all(any(name in problem for problem in problems) for name in (damaged, missing))


def test_operators_are_found_by_uid_id_and_unique_name(path: str, tmp_path: Path) -> None:
    operators = load(path).operators
    numbers, windows = operators[0], operators[1]
    assert find_operator(operators, "numbers") is numbers
    assert find_operator(operators, numbers.operator_id) is numbers
    assert find_operator(operators, "Windows") is windows
    with pytest.raises(StateIncompatibleError) as raised:
        find_operator(operators, "nobody")
    assert "'numbers'" in str(raised.value.hint)
    twins = load(write_savepoint(tmp_path / "twins", [Operator("Map", "a"), Operator("Map", "b")])).operators
    with pytest.raises(StateIncompatibleError) as ambiguous:
        find_operator(twins, "Map")
    assert twins[0].operator_id in str(ambiguous.value.hint)


@pytest.mark.parametrize("slice_bytes", [1, 300, 1 << 20])
def test_slices_have_every_key_exactly_once(path: str, slice_bytes: int) -> None:
    operator = load(path).operators[0]
    pieces = slices(operator, slice_bytes)
    assert len(pieces) > 2 or slice_bytes == 1 << 20
    assert len(pieces) <= 2 * 32
    found: list[Entry] = []
    with StateFileReader() as files:
        for piece in pieces:
            entries = list(read_entries(piece, files, "number"))
            assert all(key_group_of(entry.key, 128) in piece.key_groups for entry in entries)
            found += entries
    assert sorted((entry.key, entry.value) for entry in found) == sorted(NUMBERS.items())
    groups = [group for piece in pieces for group in piece.key_groups]
    assert groups == list(range(128))


def test_tables_can_be_left_out(path: str) -> None:
    operator = load(path).operators[0]
    with StateFileReader() as files:
        entries = [e for piece in slices(operator) for e in read_entries(piece, files, without=frozenset(["number"]))]
    assert {entry.table for entry in entries} == {"_timers/user-timers/event"}
    assert sorted(entry.key for entry in entries) == [(5, 1, None), (6, 1, None), (7, 2, None)]


@pytest.mark.parametrize("kind", [SnapshotKind.CHECKPOINT, SnapshotKind.SAVEPOINT])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_state_of_real_backends_reads_alike(backend: str, kind: SnapshotKind, tmp_path: Path) -> None:
    operator = backend_operator(backend, kind, tmp_path)
    assert operator.subtasks[0].keyed is not None
    assert operator.subtasks[0].keyed.format == ("canonical" if kind is SnapshotKind.SAVEPOINT else backend)
    with StateFileReader() as files:
        entries = [entry for piece in slices(operator) for entry in read_entries(piece, files)]
        values = {entry.key: entry.value for entry in entries if entry.table == "value"}
        (a_map,) = [entry for entry in entries if entry.table == "map"]
        (timer,) = [entry for entry in entries if entry.table.startswith("_timers/")]
        assert values == {key: -key for key in range(100)}
        assert (a_map.key, dict(a_map.value)) == (1, {"a": 1, "b": 2})
        assert (timer.table, timer.key) == ("_timers/user-timers/event", (50, 1, None))
        with restored_backend(slices(operator)[0], files) as restored:
            restored.key = 42
            assert restored.get_state(ValueStateDescriptor("value")).value() == -42
    left = [place for place in tmp_path.rglob("*") if place.is_file() and "chk" not in place.parts]
    assert left == []
