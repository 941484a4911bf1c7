from __future__ import annotations

import bz2
import gzip
import lzma
import os
import pickle
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.files.source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceSplit,
    FileSplitAssignerProvider,
    StreamFormat,
)
from firesteel.filesystem.local_paths import FileReadError
from firesteel.spi.source import Boundedness, InputStatus

# A busy machine is no failure.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def source_of(*paths, charset="utf-8"):
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(charset), *paths).build()


def small_source(path, *, chunk_bytes=7, split_bytes=None, charset="utf-8"):
    """Reads few bytes at a time, so that small files have many chunks."""
    source = FileSource(StreamFormat.text_line_format(charset), (Path(path),), FileEnumeratorProvider(split_bytes))
    source.fetch_bytes = chunk_bytes
    return source


def expected_lines(text):
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


@pytest.fixture
def write(tmp_path):
    def write(content, name="input.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\nb", ["a", "b"]),
        (b"a\n\nb\n\n", ["a", "", "b", ""]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\nb\n\rc", ["a", "b", "", "c"]),
        (b"a\rb\r", ["a", "b"]),
        ("grüße\nπ\n".encode(), ["grüße", "π"]),
        (b"tab\tand\x0bform\x0cfeed \xe2\x80\xa8 stay\n", ["tab\tand\x0bform\x0cfeed \u2028 stay"]),
    ],
)
def test_lines_and_their_ends(fakes, write, content, lines):
    assert fakes.SourceHarness(source_of(write(content))).run().records == lines
    assert fakes.SourceHarness(small_source(write(content), chunk_bytes=1)).run().records == lines


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".GZ", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)],
)
def test_compressed_files(fakes, write, suffix, compress):
    path = write(compress(b"one\r\ntwo\nthree"), f"input.txt{suffix}")
    source = FileSource(StreamFormat.text_line_format(), (path,), FileEnumeratorProvider(2))
    assert fakes.SourceHarness(source, 2).run().records == ["one", "two", "three"]


@pytest.mark.parametrize(
    "charset", ["latin-1", "utf-16", "utf-16-le", "UTF-16BE", "utf-32", "utf-8-sig", "cp1252", "cp037"]
)
def test_charsets(fakes, write, charset):
    narrow = charset in ("latin-1", "cp1252", "cp037")
    # In UTF-16 the bytes of a line end also occur across two characters: 41 0A | 00 41 and 41 00 | 0A 41.
    text = "grün\r\nzwei\n" if narrow else "grün\n\u0a41\u4100\u0a41x\u0a0a\n\u4100\u0a41\u4100y\u0d00\r\nπ\n"
    path = write(text.encode(charset))
    for chunk_bytes in range(1, 60):
        source = small_source(path, charset=charset, split_bytes=4, chunk_bytes=chunk_bytes)
        assert fakes.SourceHarness(source).run().records == expected_lines(text)


def test_utf16_without_a_mark_is_big_endian(fakes, write):
    path = write("a\nb".encode("utf-16-be"))
    assert fakes.SourceHarness(source_of(path, charset="utf-16")).run().records == ["a", "b"]


text_files = st.lists(st.sampled_from(["a", "bc", "π", "\n", "\r\n", "\r", "x" * 20]), max_size=60).map("".join)


@patient
@given(text=text_files, split_bytes=st.integers(1, 40), chunk_bytes=st.integers(1, 50), readers=st.integers(1, 3))
@example(text="a\nb\nc\n", split_bytes=2, chunk_bytes=50, readers=1)
@example(text="\n\n\n", split_bytes=1, chunk_bytes=1, readers=1)
def test_byte_ranges_give_every_line_exactly_once(fakes, text, split_bytes, chunk_bytes, readers):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "input.txt")
        path.write_bytes(text.encode())
        source = small_source(path, split_bytes=split_bytes, chunk_bytes=chunk_bytes)
        harness = fakes.SourceHarness(source, readers).run(max_records=3)
    assert sorted(harness.records) == sorted(expected_lines(text))
    if readers == 1:
        assert harness.records == expected_lines(text)
    assert len({id for output in harness.outputs for id in output.released}) == -(-len(text.encode()) // split_bytes)


@patient
@given(
    text=text_files,
    split_bytes=st.none() | st.integers(1, 40),
    chunk_bytes=st.integers(1, 50),
    new_chunk_bytes=st.integers(1, 50),
    max_records=st.integers(1, 5),
    polls=st.integers(0, 12),
    compressed=st.booleans(),
)
def test_resumes_in_the_middle_with_exactly_the_rest(
    fakes, text, split_bytes, chunk_bytes, new_chunk_bytes, max_records, polls, compressed
):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "input.gz" if compressed else "input.txt")
        path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
        first = fakes.SourceHarness(small_source(path, split_bytes=split_bytes, chunk_bytes=chunk_bytes))
        for _ in range(polls):
            if not first.ended[0]:
                first.poll(max_records=max_records)
        first.source.fetch_bytes = new_chunk_bytes
        second = first.restored().run(max_records)
        first.close()
    assert first.records + second.records == expected_lines(text)


def test_the_position_is_a_byte_offset_in_the_file(fakes, write):
    harness = fakes.SourceHarness(small_source(write(b"0123\n5678\nabcd\n"), chunk_bytes=5))
    harness.poll(max_records=1)
    [split] = harness.snapshot()[1][0]
    assert (split.position, split.records_to_skip) == (5, 0)
    harness.close()


def test_a_long_line_spans_chunks(fakes, write):
    line = "x" * 100_000
    assert fakes.SourceHarness(small_source(write(f"{line}\nend".encode()))).run().records == [line, "end"]


def test_at_most_max_records_at_a_time(fakes, write):
    harness = fakes.SourceHarness(source_of(write(b"a\nb\nc\nd\ne\n")))
    statuses = [harness.poll(max_records=2) for _ in range(3)]
    assert harness.outputs[0].batches == [["a", "b"], ["c", "d"], ["e"]]
    assert statuses == [InputStatus.MORE_AVAILABLE, InputStatus.MORE_AVAILABLE, InputStatus.END_OF_INPUT]
    harness.close()


def test_directories_are_searched_and_hidden_files_passed_over(fakes, write, tmp_path):
    write(b"2\n", "in/b.txt")
    write(b"1\n", "in/a.txt")
    write(b"3\n", "in/deep/er/c.txt")
    write(b"no\n", "in/.hidden")
    write(b"no\n", "in/_SUCCESS")
    write(b"no\n", "in/.git/config")
    write(b"", "in/empty")
    (tmp_path / "in" / "deep" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "dangling").symlink_to(tmp_path / "nowhere")
    assert fakes.SourceHarness(source_of(tmp_path / "in")).run().records == ["1", "2", "3"]


def test_paths_are_read_in_the_order_given(fakes, write):
    one, two = write(b"1", "one"), write(b"2", "_two")
    assert fakes.SourceHarness(source_of(two, f"file://{one}", two)).run().records == ["2", "1", "2"]


def test_an_empty_directory_ends_at_once(fakes, tmp_path):
    assert fakes.SourceHarness(source_of(tmp_path), 2).run().records == []


def test_large_files_are_cut_only_if_the_enumerator_says_so(write):
    path = write(b"line\n" * 10)
    text = StreamFormat.text_line_format()
    assert len(FileEnumeratorProvider(20).enumerate_splits((path,), text)) == 3
    whole = FileEnumeratorProvider.default_non_splittable_file_enumerator().enumerate_splits((path,), text)
    assert [(split.start, split.end) for split in whole] == [(0, 50)]
    default = FileEnumeratorProvider.default_splittable_file_enumerator()
    assert len(default.enumerate_splits((path,), text)) == 1


def test_a_missing_path_is_found_when_the_source_is_built(tmp_path):
    missing = tmp_path / "nothing" / "here.txt"
    with pytest.raises(InvalidProgramError, match=str(missing)):
        source_of(missing)


def test_a_path_removed_after_building_is_found_at_enumeration(fakes, write):
    path = write(b"a")
    source = source_of(path)
    path.unlink()
    with pytest.raises(InvalidProgramError, match=str(path)):
        fakes.SourceHarness(source)


def test_a_file_removed_before_reading(fakes, write):
    path = write(b"a")
    harness = fakes.SourceHarness(source_of(path))
    path.unlink()
    with pytest.raises(FileReadError) as caught:
        harness.poll()
    assert caught.value.path == str(path)
    harness.close()


def test_a_truncated_file_cannot_be_resumed(fakes, write):
    path = write(b"short\n")
    reader = source_of(path).create_reader(fakes.ReaderContext())
    reader.add_splits([FileSourceSplit("0", str(path), 0, 100, position=50)])
    with pytest.raises(FileReadError, match="6 bytes"):
        reader.poll_next(fakes.ReaderOutput(), 10)
    reader.close()


@pytest.mark.parametrize("left", [20, 60])
def test_a_file_that_is_truncated_while_it_is_read(fakes, write, left):
    path = write(b"".join(b"line %d\n" % number for number in range(10)))
    harness = fakes.SourceHarness(small_source(path, chunk_bytes=16))
    harness.poll(max_records=1)
    os.truncate(path, left)
    with pytest.raises(FileReadError, match=f"{left} bytes but had at least 70"):
        harness.run()
    assert all(line in {f"line {number}" for number in range(10)} for line in harness.records)
    harness.close()


@pytest.mark.parametrize("chunk_bytes", [3, 1000])
def test_undecodable_bytes(fakes, write, chunk_bytes):
    path = write(b"good line\nalso good\nna\xefve\r\nlater\n")
    harness = fakes.SourceHarness(small_source(path, chunk_bytes=chunk_bytes))
    with pytest.raises(FileReadError) as caught:
        harness.run()
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.path == str(path)
    assert error.offset == 22
    assert "at byte 22: 0xef" in error.message
    assert "line: na\\xefve" in error.message
    assert "later" not in error.message
    assert "latin-1" in error.hint
    harness.close()


def test_the_preview_of_an_undecodable_long_line_is_short(fakes, write):
    harness = fakes.SourceHarness(source_of(write(b"x" * 5000 + b"\xff" + b"y" * 5000)))
    with pytest.raises(FileReadError) as caught:
        harness.run()
    assert caught.value.offset == 5000
    assert "x\\xffy" in caught.value.message
    assert len(caught.value.message) < 500
    harness.close()


@pytest.mark.parametrize("content", [b"not compressed", gzip.compress(b"line\n" * 1000, mtime=0)[:-20]])
def test_damaged_compressed_files(fakes, write, content):
    path = write(content, "input.gz")
    harness = fakes.SourceHarness(source_of(path))
    with pytest.raises(FileReadError) as caught:
        harness.run()
    assert caught.value.path == str(path)
    assert "compressed" in caught.value.hint
    harness.close()


def test_bad_settings_are_refused(write):
    with pytest.raises(InvalidProgramError, match="klingon"):
        StreamFormat.text_line_format("klingon")
    with pytest.raises(InvalidProgramError, match="base64"):
        StreamFormat.text_line_format("base64")
    with pytest.raises(InvalidProgramError, match="gopher"):
        source_of("gopher://host/path")
    with pytest.raises(InvalidProgramError):
        source_of()
    with pytest.raises(InvalidProgramError):
        source_of("")
    with pytest.raises(InvalidProgramError, match="neither"):
        source_of(os.devnull)
    for interval, problem in ((0, InvalidProgramError), (-1, InvalidProgramError), (None, TypeError)):
        with pytest.raises(problem):
            FileSource.for_record_stream_format(StreamFormat.text_line_format(), write(b"")).monitor_continuously(
                interval
            )


def test_describes_itself(write):
    path = write(b"")
    source = (
        FileSource.for_record_stream_format(StreamFormat.text_line_format(), path)
        .process_static_file_set()
        .set_file_enumerator(FileEnumeratorProvider.default_splittable_file_enumerator())
        .set_split_assigner(FileSplitAssignerProvider.locality_aware_split_assigner())
        .build()
    )
    assert repr(source) == f"FileSource({path}; text lines in UTF-8)"
    assert source.get_boundedness() is Boundedness.BOUNDED
