from __future__ import annotations

import io
import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.errors import CheckpointError, CheckpointStorageError, CorruptStateError
from firesteel.config import checkpointing_options
from firesteel.config.configuration import Configuration
from firesteel.filesystem.filesystem import checksum
from firesteel.runtime.checkpoint import files as files_module
from firesteel.runtime.checkpoint import state_file_reader
from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader
from firesteel.runtime.checkpoint.local_state import LocalStateStore
from firesteel.runtime.model.checkpoint_options import CheckpointLocation
from firesteel.runtime.model.state_handles import FileSegment, InlineBytes, StateBytes
from firesteel.testing.faulty_storage import StorageFaults
from tests.support.checkpoints.store import CheckpointStore

BIG = 50_000


def location(store: CheckpointStore, checkpoint_id: int = 1) -> CheckpointLocation:
    return CheckpointLocation(store.path("job", f"chk-{checkpoint_id}"), store.path("job", "shared"))


def segment_of(data: StateBytes) -> FileSegment:
    assert isinstance(data, FileSegment)
    return data


def data_of(number: int, length: int = BIG) -> bytes:
    return bytes([number]) * length


# ---- writing ----------------------------------------------------------------------------------------


def test_small_state_stands_in_the_handle(store: CheckpointStore) -> None:
    files = SnapshotFiles(location(store), inline_threshold=100)
    assert files.write(b"x" * 100, shared=True) == InlineBytes(b"x" * 100)
    assert files.write([b"ab", b"cd"], shared=False) == InlineBytes(b"abcd")
    assert files.write(b"", shared=False) == InlineBytes(b"")
    files.finish()
    assert store.files() == []
    assert files.bytes_written == 104


def test_other_state_goes_into_one_file_for_each_scope(store: CheckpointStore) -> None:
    files = SnapshotFiles(location(store), inline_threshold=100)
    own = [segment_of(files.write(data_of(n), shared=False)) for n in range(3)]
    shared = [segment_of(files.write([data_of(n), data_of(n + 1)], shared=True)) for n in range(2)]
    files.finish()
    assert len({segment.path for segment in own}) == len({segment.path for segment in shared}) == 1
    assert [(segment.offset, segment.length) for segment in own] == [(0, BIG), (BIG, BIG), (2 * BIG, BIG)]
    assert own[1].checksum == checksum(data_of(1))
    assert [segment.path.startswith(location(store).exclusive + "/") for segment in own] == [True] * 3
    assert [segment.path.startswith(location(store).shared + "/") for segment in shared] == [True] * 2
    assert len(store.files()) == 2
    assert files.bytes_written == 7 * BIG
    with StateFileReader() as reader:
        assert [reader.read(segment) for segment in own] == [data_of(n) for n in range(3)]
        assert [reader.read(segment) for segment in shared] == [data_of(n) + data_of(n + 1) for n in range(2)]


def test_without_merging_each_state_is_a_file(store: CheckpointStore) -> None:
    files = SnapshotFiles(location(store), file_merging=False)
    segments = [segment_of(files.write(data_of(n), shared=True)) for n in range(3)]
    files.finish()
    assert len({segment.path for segment in segments}) == 3
    assert [segment.offset for segment in segments] == [0, 0, 0]
    with StateFileReader() as reader:
        assert [reader.read(segment) for segment in segments] == [data_of(n) for n in range(3)]


def test_streams_tell_where_they_are_and_may_be_open_together(store: CheckpointStore) -> None:
    files = SnapshotFiles(location(store))
    written = [bytearray() for _ in range(3)]
    streams = [files.write_stream(shared=True) for _ in range(3)]
    before = files.write(data_of(9), shared=True)
    for round in range(20):
        for number, stream in enumerate(streams):
            assert stream.tell() == len(written[number])
            chunk = bytes([number]) * (1000 * (round + 1))
            stream.write(chunk)
            written[number] += chunk
    segments = [stream.finish() for stream in streams]
    after = files.write(data_of(8), shared=True)
    files.finish()
    assert len(store.files()) == 3, "as many files as streams that were open together"
    with StateFileReader() as reader:
        assert [reader.read(segment) for segment in segments] == written
        assert reader.read(before) == data_of(9)
        assert reader.read(after) == data_of(8)


def test_a_small_stream_is_inline(store: CheckpointStore) -> None:
    files = SnapshotFiles(location(store))
    with files.write_stream(shared=True) as stream:
        stream.write(b"ab")
        stream.write(bytearray(b"cd"))
        assert stream.finish() == InlineBytes(b"abcd")


def test_a_stream_that_is_left_unfinished_harms_no_other(store: CheckpointStore) -> None:
    files = SnapshotFiles(location(store))
    with files.write_stream(shared=True) as stream:
        stream.write(data_of(1))
    segment = segment_of(files.write(data_of(2), shared=True))
    files.finish()
    assert segment.offset == BIG
    with StateFileReader() as reader:
        assert reader.read(segment) == data_of(2)


def test_large_pieces_are_hashed_and_written_in_parts(store: CheckpointStore) -> None:
    data = os.urandom(1 << 20) * 3 + b"end"
    files = SnapshotFiles(location(store))
    segment = segment_of(files.write(data, shared=False))
    files.finish()
    assert segment.checksum == checksum(data)
    with StateFileReader() as reader:
        assert reader.read(segment) == data


def test_local_files_become_files_or_if_small_segments(store: CheckpointStore, tmp_path: Path) -> None:
    sizes = [3_000_000, 100, 2_000_000, 500_000]
    sources = [tmp_path / f"{n}.sst" for n in range(4)]
    files = SnapshotFiles(location(store))
    segments = []
    for source, size in zip(sources, sizes, strict=True):
        source.write_bytes(os.urandom(size))
        content = source.read_bytes()
        segment = files.upload(source, shared=True)
        source.unlink()  # RocksDB's own checkpoint may be gone before the upload is done
        segments.append((segment, content))
    files.finish()
    assert len(store.files()) == 3, "two large files, and one for the two small ones"
    assert files.bytes_written == sum(sizes)
    with StateFileReader() as reader:
        for segment, content in segments:
            assert reader.read(segment) == content
            assert segment.checksum == checksum(content)


def test_more_uploads_than_may_wait_at_once(
    store: CheckpointStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_module, "_OPEN_UPLOADS", 3)
    monkeypatch.setattr(files_module, "MERGE_THRESHOLD", 0)
    source = tmp_path / "file"
    files = SnapshotFiles(location(store), transfer_threads=2)
    segments = []
    for number in range(12):
        source.write_bytes(data_of(number))
        segments.append(files.upload(source, shared=True))
        source.unlink()
    files.finish()
    assert len(store.files()) == 12
    with StateFileReader() as reader:
        assert [reader.read(segment) for segment in segments] == [data_of(n) for n in range(12)]


def test_discard_leaves_nothing_behind(store: CheckpointStore, tmp_path: Path) -> None:
    source = tmp_path / "file"
    source.write_bytes(data_of(1, 2_000_000))
    for finished in (False, True):
        files = SnapshotFiles(location(store))
        files.write(data_of(1), shared=True)
        files.write(data_of(1), shared=False)
        files.upload(source, shared=True)
        stream = files.write_stream(shared=True)
        stream.write(data_of(2))
        if finished:
            stream.finish()
            files.finish()
            assert store.files()
        files.discard()
        files.discard()
        assert store.files() == []
        assert "chk-1" not in store.filesystem.list(store.path("job"))


def test_discard_leaves_what_others_wrote(store: CheckpointStore) -> None:
    first, second = SnapshotFiles(location(store)), SnapshotFiles(location(store))
    segments = [first.write(data_of(1), shared=scope) for scope in (True, False)]
    second.write(data_of(2), shared=True)
    second.write(data_of(2), shared=False)
    first.finish()
    second.finish()
    second.discard()
    assert len(store.files()) == 2
    with StateFileReader() as reader:
        assert [reader.read(segment) for segment in segments] == [data_of(1)] * 2


def test_a_cancelled_snapshot_stops(store: CheckpointStore, tmp_path: Path) -> None:
    files = SnapshotFiles(location(store))
    stream = files.write_stream(shared=True)
    stream.write(data_of(1))
    canceller = threading.Thread(target=files.cancel)
    canceller.start()
    canceller.join()
    with pytest.raises(CheckpointError, match="aborted"):
        stream.write(data_of(1))
    with pytest.raises(CheckpointError, match="aborted"):
        files.write(b"x", shared=False)
    with pytest.raises(CheckpointError, match="aborted"):
        files.upload(tmp_path / "file", shared=False)
    with pytest.raises(CheckpointError, match="aborted"):
        files.finish()
    files.discard()
    assert store.files() == []


def test_a_store_that_fails_fails_the_snapshot_and_is_named(store: CheckpointStore, faults: StorageFaults) -> None:
    files = SnapshotFiles(location(store))
    files.write(data_of(1), shared=True)
    files.write(data_of(1), shared=False)
    faults.set("full write in shared")
    with pytest.raises(CheckpointStorageError, match="No space left on device") as raised:
        files.finish()
    assert raised.value.path is not None
    assert raised.value.path.startswith(location(store).shared)
    faults.clear()
    files.discard()
    assert store.files() == []


def test_an_upload_that_fails_fails_the_snapshot(store: CheckpointStore, faults: StorageFaults, tmp_path: Path) -> None:
    source = tmp_path / "file"
    source.write_bytes(data_of(1, 2_000_000))
    files = SnapshotFiles(location(store))
    faults.set("fail write once")
    files.upload(source, shared=True)
    with pytest.raises(CheckpointStorageError, match="Input/output error"):
        files.finish()
    with pytest.raises(CheckpointError):
        files.finish()
    files.discard()
    assert store.files() == []


def test_discard_does_what_it_can(store: CheckpointStore, faults: StorageFaults) -> None:
    files = SnapshotFiles(location(store))
    for shared in (True, False):
        files.write(data_of(1), shared=shared)
    files.finish()
    faults.set("fail delete in shared")
    with pytest.raises(CheckpointStorageError, match="Cannot delete"):
        files.discard()
    assert [name.split("/")[1] for name in store.files()] == ["shared"]


def test_thresholds_come_from_the_configuration(store: CheckpointStore) -> None:
    configuration = Configuration.from_dict(
        {
            checkpointing_options.INLINE_STATE_THRESHOLD.key: "5 mb",
            checkpointing_options.STATE_TRANSFER_THREADS.key: "2",
            checkpointing_options.FILE_MERGING_ENABLED.key: "false",
        }
    )
    files = SnapshotFiles.configured(location(store), configuration)
    assert isinstance(files.write(data_of(1, 1 << 20), shared=True), InlineBytes)
    large = [segment_of(files.write(data_of(n, (1 << 20) + 1), shared=True)) for n in range(2)]
    assert large[0].path != large[1].path
    files.finish()
    with StateFileReader.configured(configuration) as reader:
        assert reader.read(large[1]) == data_of(1, (1 << 20) + 1)


# ---- reading ----------------------------------------------------------------------------------------


@pytest.fixture
def two(store: CheckpointStore) -> tuple[FileSegment, FileSegment]:
    """Two segments of one file."""
    files = SnapshotFiles(location(store))
    segments = [segment_of(files.write(data_of(n), shared=False)) for n in (1, 2)]
    files.finish()
    return segments[0], segments[1]


def every_way_to_read(reader: StateFileReader, segment: FileSegment, directory: Path) -> list[bytes]:
    target = directory / "target"
    reader.download(segment, target)
    with reader.open(segment) as file:
        content = file.read()
    downloaded = target.read_bytes()
    target.unlink()
    return [reader.read(segment), content, downloaded]


def test_a_missing_file_is_corrupt_state(
    store: CheckpointStore, two: tuple[FileSegment, FileSegment], tmp_path: Path
) -> None:
    store.filesystem.delete(two[0].path)
    with StateFileReader() as reader:
        for way in (reader.read, reader.open, lambda segment: reader.download(segment, tmp_path / "target")):
            with pytest.raises(CorruptStateError, match="is missing") as raised:
                way(two[0])
            assert raised.value.path == two[0].path
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("limit", [0, 10**9], ids=["spooled", "in-memory"])
def test_a_truncated_file_is_corrupt_state(
    store: CheckpointStore,
    two: tuple[FileSegment, FileSegment],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
) -> None:
    monkeypatch.setattr(state_file_reader, "_IN_MEMORY", limit)
    store.damage(two[0].path, keep=2 * BIG - 10)
    with StateFileReader() as reader:
        assert every_way_to_read(reader, two[0], tmp_path) == [data_of(1)] * 3, "a segment's own bytes count"
        for way in (reader.read, reader.open, lambda segment: reader.download(segment, tmp_path / "target")):
            with pytest.raises(CorruptStateError, match=f"only {BIG - 10} of {BIG}") as raised:
                way(two[1])
            assert raised.value.path == two[1].path
            assert raised.value.hint is not None
    assert [path.name for path in tmp_path.iterdir() if "target" in path.name] == []


@pytest.mark.parametrize("limit", [0, 10**9], ids=["spooled", "in-memory"])
def test_a_changed_file_is_corrupt_state(
    store: CheckpointStore,
    two: tuple[FileSegment, FileSegment],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
) -> None:
    monkeypatch.setattr(state_file_reader, "_IN_MEMORY", limit)
    store.damage(two[0].path, flip=BIG // 2)
    with StateFileReader() as reader:
        for way in (reader.read, reader.open, lambda segment: reader.download(segment, tmp_path / "target")):
            with pytest.raises(CorruptStateError, match=f"should have the checksum {two[0].checksum}"):
                way(two[0])
        assert every_way_to_read(reader, two[1], tmp_path) == [data_of(2)] * 3


@pytest.mark.parametrize("fault", ["truncate read", "truncate write"])
def test_storage_that_loses_the_end_of_files_is_found_out(
    store: CheckpointStore, faults: StorageFaults, fault: str, tmp_path: Path
) -> None:
    faults.set(fault)
    files = SnapshotFiles(location(store))
    segment = segment_of(files.write(data_of(1), shared=False))
    files.finish()
    with StateFileReader() as reader, pytest.raises(CorruptStateError, match="only"):
        reader.read(segment)
    with StateFileReader() as reader, pytest.raises(CorruptStateError, match="only"):
        reader.download(segment, tmp_path / "target")


def test_storage_that_cannot_be_read_is_not_corrupt(
    store: CheckpointStore, two: tuple[FileSegment, FileSegment], faults: StorageFaults
) -> None:
    faults.set("fail read")
    with StateFileReader() as reader, pytest.raises(CheckpointStorageError, match="Input/output error") as raised:
        reader.read(two[0])
    assert not isinstance(raised.value, CorruptStateError)


def test_large_state_is_read_from_where_one_wants(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file_reader, "_IN_MEMORY", 1000)
    content = os.urandom(300_000)
    files = SnapshotFiles(location(store))
    files.write(data_of(1), shared=True)
    segment = files.write(content, shared=True)
    files.write(data_of(2), shared=True)
    files.finish()
    with StateFileReader() as reader, reader.open(segment) as file:
        assert file.read(10) == content[:10]
        assert file.tell() == 10
        assert file.seek(200_000) == 200_000
        assert file.read(5) == content[200_000:200_005]
        assert file.seek(-7, io.SEEK_END) == len(content) - 7
        assert file.read() == content[-7:]
        assert file.read(1) == b""
        file.seek(0)
        assert file.read() == content


def test_inline_state_needs_no_file(tmp_path: Path) -> None:
    with StateFileReader() as reader:
        assert reader.read(InlineBytes(b"abc")) == b"abc"
        with reader.open(InlineBytes(b"abc")) as file:
            assert file.read() == b"abc"


def test_many_files_are_downloaded_together(store: CheckpointStore, tmp_path: Path) -> None:
    files = SnapshotFiles(location(store))
    segments = [segment_of(files.write(data_of(n), shared=True)) for n in range(10)]
    files.finish()
    targets = [tmp_path / "db" / f"{n}.sst" for n in range(10)]
    with StateFileReader(transfer_threads=3) as reader:
        reader.download_all(zip(segments, targets, strict=True))
    assert [target.read_bytes() for target in targets] == [data_of(n) for n in range(10)]


def test_one_bad_file_fails_the_download_of_all(store: CheckpointStore, tmp_path: Path) -> None:
    files = SnapshotFiles(location(store), file_merging=False)
    segments = [segment_of(files.write(data_of(n), shared=True)) for n in range(6)]
    files.finish()
    store.damage(segments[4].path, keep=10)
    with StateFileReader(transfer_threads=2) as reader, pytest.raises(CorruptStateError) as raised:
        reader.download_all((segment, tmp_path / segment.checksum) for segment in segments)
    assert raised.value.path == segments[4].path


def test_prefetched_state_is_read_like_any_other(store: CheckpointStore, tmp_path: Path) -> None:
    files = SnapshotFiles(location(store))
    segments = [segment_of(files.write(data_of(n), shared=True)) for n in range(5)]
    files.finish()
    with StateFileReader() as reader:
        reader.prefetch(segments)
        reader.prefetch(segments)
        for number, segment in enumerate(segments):
            assert every_way_to_read(reader, segment, tmp_path) == [data_of(number)] * 3
    assert not list(Path(tempfile.gettempdir()).glob("firesteel-restore-*"))


def test_prefetching_what_is_damaged_is_said_when_it_is_read(
    store: CheckpointStore, two: tuple[FileSegment, FileSegment]
) -> None:
    store.damage(two[0].path, flip=0)
    with StateFileReader() as reader:
        reader.prefetch(two)
        assert reader.read(two[1]) == data_of(2)
        with pytest.raises(CorruptStateError, match="checksum"):
            reader.read(two[0])


# ---- any mixture ------------------------------------------------------------------------------------

pieces = st.lists(
    st.tuples(
        st.booleans(),
        st.lists(st.binary(max_size=60), max_size=4),
        st.sampled_from(["write", "stream", "upload"]),
    ),
    max_size=12,
)


@given(pieces=pieces, threshold=st.integers(0, 100), merging=st.booleans())
def test_whatever_is_written_comes_back(pieces, threshold: int, merging: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="state-files-") as directory:
        base = Path(directory)
        place = CheckpointLocation(str(base / "chk-1"), str(base / "shared"))
        local_state = LocalStateStore("job", base / "local")
        files = SnapshotFiles(place, inline_threshold=threshold, file_merging=merging, local_state=local_state)
        written: list[tuple[StateBytes, bytes]] = []
        for shared, chunks, how in pieces:
            content = b"".join(chunks)
            if how == "write":
                handle: StateBytes = files.write(chunks, shared=shared)
            elif how == "stream":
                with files.write_stream(shared) as stream:
                    for chunk in chunks:
                        stream.write(chunk)
                    handle = stream.finish()
            else:
                (base / "upload").write_bytes(content)
                handle = files.upload(base / "upload", shared=shared)
                (base / "upload").unlink()
            assert handle.length == len(content)
            written.append((handle, content))
        segments = [handle for handle, _ in written if isinstance(handle, FileSegment)]
        files.finish(segments)

        ranges: dict[str, list[tuple[int, int]]] = {}
        for segment in segments:
            ranges.setdefault(segment.path, []).append((segment.offset, segment.offset + segment.length))
        for path, parts in ranges.items():
            ends = [0, *(end for _, end in parts)]
            assert [start for start, _ in parts] == ends[:-1], "segments neither overlap nor leave room"
            assert Path(path).stat().st_size == ends[-1]
        if merging:
            assert len(ranges) <= 2
        assert files.bytes_written == sum(len(content) for _, content in written)

        for reader in (StateFileReader(), StateFileReader(local_state)):
            with reader:
                assert [reader.read(handle) for handle, _ in written] == [content for _, content in written]
        local_state.delete()
