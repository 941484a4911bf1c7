"""JSON lines, Avro, Parquet and compressed files through FileSource: each record once, wherever reading stopped."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import sys
import zlib

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from firesteel.api.output_tag import OutputTag
from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import DeserializationSchema, SimpleStringSchema
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row
from firesteel.connectors.files.source import FileEnumeratorProvider, FileSource, StreamFormat
from firesteel.datastream.formats.avro import AvroBulkFormat, AvroSchema
from firesteel.datastream.formats.parquet import AvroParquetReaders, ParquetColumnarRowInputFormat, ParquetFormat
from firesteel.filesystem.local_paths import FileReadError
from firesteel.formats.bad_records import BadRecordError, BadRecords
from firesteel.formats.compression import MissingCodecError

SIDE = OutputTag("bad")
ROW = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
AVRO = {
    "type": "record",
    "name": "Item",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}],
}


def source_of(file_format, *paths, split_bytes=None, fetch_bytes=None, policy=None):
    if isinstance(file_format, StreamFormat):
        builder = FileSource.for_record_stream_format(file_format, *paths)
    else:
        builder = FileSource.for_bulk_file_format(file_format, *paths)
    builder.set_file_enumerator(FileEnumeratorProvider(split_bytes))
    if policy is not None:
        builder.set_bad_records(policy)
    source = builder.build()
    source.fetch_bytes = fetch_bytes
    return source


def write_avro(path, ids, codec="deflate", sync_interval=100):
    with path.open("wb") as file:
        fastavro.writer(file, AVRO, [{"id": i, "name": f"n{i}"} for i in ids], codec=codec, sync_interval=sync_interval)


@pytest.fixture
def sources(tmp_path):
    """Every format over two files with the ids 0 to 199, and a function that gets the id of a record."""
    parts = {"a": range(150), "b": range(150, 200)}
    for kind in ("json", "packed", "avro", "parquet"):
        (tmp_path / kind).mkdir()
    for name, ids in parts.items():
        lines = "".join(json.dumps({"id": i, "name": f"n{i} ü"}) + "\n" for i in ids).encode()
        (tmp_path / "json" / f"{name}.json").write_bytes(lines)
        (tmp_path / "packed" / f"{name}.json.zst").write_bytes(pa.compress(lines, "zstd", asbytes=True))
        write_avro(tmp_path / "avro" / f"{name}.avro", ids)
        table = pa.table({"id": list(ids), "name": [f"n{i}" for i in ids]})
        pq.write_table(table, tmp_path / "parquet" / f"{name}.parquet", row_group_size=40)
    item = AvroSchema(AVRO)
    return {
        "json": (source_of(StreamFormat.json_line_format(), tmp_path / "json", fetch_bytes=200), "id"),
        "json in splits": (source_of(StreamFormat.json_line_format(), tmp_path / "json", split_bytes=99), "id"),
        "json rows": (source_of(StreamFormat.json_line_format(ROW), tmp_path / "json", fetch_bytes=77), "id"),
        "json, compressed": (source_of(StreamFormat.json_line_format(ROW), tmp_path / "packed"), "id"),
        "avro": (source_of(AvroBulkFormat(), tmp_path / "avro"), "id"),
        "avro in splits": (source_of(AvroBulkFormat(item), tmp_path / "avro", split_bytes=83), "id"),
        "parquet": (source_of(ParquetFormat(as_tuples=True), tmp_path / "parquet"), 0),
        "parquet in splits": (source_of(ParquetFormat(), tmp_path / "parquet", split_bytes=64), "id"),
        "parquet rows": (source_of(ParquetColumnarRowInputFormat(ROW, batch_size=7), tmp_path / "parquet"), "id"),
        "parquet as avro": (source_of(AvroParquetReaders.for_generic_record(item), tmp_path / "parquet"), "id"),
    }


NAMES = [
    "json",
    "json in splits",
    "json rows",
    "json, compressed",
    "avro",
    "avro in splits",
    "parquet",
    "parquet in splits",
    "parquet rows",
    "parquet as avro",
]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_lost_and_nothing_comes_twice(fakes, sources, name):
    source, key = sources[name]
    for seed in range(4):
        seen = fakes.SourceHarness.read_with_failures(source, random.Random(f"{name}{seed}"), 8, 3)
        assert sorted(record[key] for record in seen) == list(range(200))


@pytest.mark.parametrize("name", [name for name in NAMES if "splits" in name])
def test_several_readers_share_a_file(fakes, sources, name):
    source, key = sources[name]
    harness = fakes.SourceHarness(source, 3).run(5)
    assert all(output.records for output in harness.outputs)
    assert sorted(record[key] for record in harness.records) == list(range(200))


class TestJsonLines:
    def test_what_a_record_is(self, fakes, tmp_path):
        path = tmp_path / "a.json"
        path.write_bytes(b'\xef\xbb\xbf{"id": 1, "name": "x"}\r\n\r\n\n{"id": 2, "name": null}')
        plain = fakes.SourceHarness(source_of(StreamFormat.json_line_format(), path)).run().records
        assert plain == [{"id": 1, "name": "x"}, {"id": 2, "name": None}]
        source = source_of(StreamFormat.json_line_format(ROW), path)
        assert fakes.SourceHarness(source).run().records == [Row(id=1, name="x"), Row(id=2, name=None)]
        assert source.get_produced_type() == ROW
        path.write_bytes(b"")
        assert fakes.SourceHarness(source).run().records == []

    @pytest.mark.parametrize("fetch_bytes", [1, 12, None])
    def test_bad_lines_and_where_they_are(self, fakes, tmp_path, fetch_bytes):
        path = tmp_path / "a.json"
        path.write_bytes(b'{"id": 1}\r\n\r\n{"id": \r\n{"id": 3}\nnix\n{"id": 5}')
        failing = fakes.SourceHarness(source_of(StreamFormat.json_line_format(), path, fetch_bytes=fetch_bytes))
        with pytest.raises(BadRecordError) as caught:
            failing.run()
        failing.close()
        assert (caught.value.bad_record.source, caught.value.bad_record.offset) == (str(path), 13)
        policy = BadRecords.side_output(SIDE)
        source = source_of(StreamFormat.json_line_format(), path, fetch_bytes=fetch_bytes, policy=policy)
        for polls in range(5):
            first = fakes.SourceHarness(source)
            for _ in range(polls):
                if not first.ended[0]:
                    first.poll(max_records=1)
            second = first.restored().run(2)
            first.close()
            sides = [bad for output in (first.outputs[0], second.outputs[0]) for _, bad in output.sides]
            assert [(bad.raw, bad.offset) for bad in sides] == [(b'{"id": ', 13), (b"nix", 32)]
            assert [record["id"] for record in first.records + second.records] == [1, 3, 5]

    def test_a_schema_of_ones_own_is_opened_once(self, fakes, tmp_path):
        for name in "ab":
            (tmp_path / name).write_text(f"{name}1\nskip\n{name}2\n")
        harness = fakes.SourceHarness(source_of(StreamFormat.schema_line_format(Counting()), tmp_path)).run()
        assert harness.records == [(1, "a1"), (1, "a2"), (1, "b1"), (1, "b2")]
        with pytest.raises(InvalidProgramError, match="DeserializationSchema"):
            StreamFormat.schema_line_format(len)

    def test_strings_that_are_no_text(self, fakes, tmp_path):
        (tmp_path / "a").write_bytes(b"one\n\xff\nthree\n")
        source = source_of(StreamFormat.schema_line_format(SimpleStringSchema()), tmp_path, policy=BadRecords.drop())
        assert fakes.SourceHarness(source).run().records == ["one", "three"]


class Counting(DeserializationSchema):
    opened = 0

    def open(self):
        self.opened += 1

    def deserialize(self, message):
        return None if message == b"skip" else (self.opened, message.decode())


class TestTextLines:
    def test_lines_that_are_no_text_can_go_to_a_side_output(self, fakes, tmp_path):
        (tmp_path / "a").write_bytes(b"one\r\nna\xefve\r\nthree\n")
        for fetch_bytes in (1, 6, None):
            for polls in range(4):
                text = StreamFormat.text_line_format()
                policy = BadRecords.side_output(SIDE)
                first = fakes.SourceHarness(source_of(text, tmp_path, fetch_bytes=fetch_bytes, policy=policy))
                for _ in range(polls):
                    if not first.ended[0]:
                        first.poll(max_records=1)
                second = first.restored().run(1)
                first.close()
                assert first.records + second.records == ["one", "three"]
                ((_, bad),) = first.outputs[0].sides + second.outputs[0].sides
                assert (bad.raw, bad.offset) == (b"na\xefve", 5)


CODECS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".deflate": zlib.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
    ".ZSTD": lambda data: pa.compress(data, "zstd", asbytes=True),
}


class TestCompressed:
    @pytest.mark.parametrize("suffix", CODECS)
    def test_each_is_read_from_its_beginning_by_one_reader(self, fakes, tmp_path, suffix):
        lines = [f"line {number} " + "x" * (number % 50) for number in range(3000)]
        (tmp_path / f"a.txt{suffix}").write_bytes(CODECS[suffix]("\n".join(lines).encode()))
        source = source_of(StreamFormat.text_line_format("utf-8-sig"), tmp_path, split_bytes=10, fetch_bytes=1000)
        for polls in (0, 1, 40):
            first = fakes.SourceHarness(source)
            for _ in range(polls):
                first.poll(max_records=7)
            second = first.restored().run(500)
            first.close()
            assert first.records + second.records == lines
            assert len(second.outputs[0].released) == 1

    @pytest.mark.parametrize("suffix", [".deflate", ".zst", ".gz"])
    def test_one_that_is_cut_off_or_plain(self, fakes, tmp_path, suffix):
        whole = CODECS[suffix](random.Random(1).randbytes(5000))
        for content in (whole[:-900], b"plain text, not compressed at all"):
            path = tmp_path / f"a{suffix}"
            path.write_bytes(content)
            harness = fakes.SourceHarness(source_of(StreamFormat.text_line_format("latin-1"), path))
            with pytest.raises(FileReadError) as caught:
                harness.run()
            assert caught.value.path == str(path)
            assert "compressed" in caught.value.hint
            harness.close()

    def test_zstandard_without_pyarrow(self, fakes, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        lines = [f"{n} {'x' * (n % 50)}" for n in range(5000)]
        frames = [CODECS[".zst"]("\n".join(part).encode() + b"\n") for part in (lines[:2000], lines[2000:])]
        path = tmp_path / "a.zst"
        path.write_bytes(b"".join(frames))
        assert fakes.SourceHarness(source_of(StreamFormat.text_line_format(), path)).run().records == lines
        for content in (frames[0] + frames[1][:-20], b"plain text, not compressed at all"):
            path.write_bytes(content)
            harness = fakes.SourceHarness(source_of(StreamFormat.text_line_format(), path))
            with pytest.raises(FileReadError, match=r"a\.zst"):
                harness.run()
            harness.close()

    def test_an_empty_compressed_file(self, fakes, tmp_path):
        for suffix, compress in CODECS.items():
            (tmp_path / f"a{suffix}").write_bytes(compress(b""))
        assert fakes.SourceHarness(source_of(StreamFormat.text_line_format(), tmp_path)).run().records == []

    def test_a_missing_package_is_named(self, fakes, tmp_path, monkeypatch):
        (tmp_path / "a.zst").write_bytes(b"")
        monkeypatch.setitem(sys.modules, "zstandard", None)
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        harness = fakes.SourceHarness(source_of(StreamFormat.text_line_format(), tmp_path))
        with pytest.raises(MissingCodecError, match=r"\.zst") as caught:
            harness.poll()
        assert "pip install" in caught.value.hint
        harness.close()


class TestAvro:
    def test_splits_of_any_size_give_each_record_once(self, fakes, tmp_path):
        write_avro(tmp_path / "a.avro", range(100), sync_interval=60)
        size = (tmp_path / "a.avro").stat().st_size
        for split_bytes in (1, 2, 3, 7, 16, 17, 64, 250, size - 1, size):
            source = source_of(AvroBulkFormat(), tmp_path, split_bytes=split_bytes)
            harness = fakes.SourceHarness(source).run(50)
            assert [record["id"] for record in harness.records] == list(range(100))

    def test_the_position_is_a_block_and_records_to_skip(self, fakes, tmp_path):
        write_avro(tmp_path / "a.avro", range(100), sync_interval=100)
        harness = fakes.SourceHarness(source_of(AvroBulkFormat(), tmp_path))
        while len(harness.records) < 33:
            harness.poll(max_records=3)
        ((split,),) = harness.snapshot()[1]
        data = (tmp_path / "a.avro").read_bytes()
        with (tmp_path / "a.avro").open("rb") as file:
            sync = fastavro.reader(file)._header["sync"]
        assert data[split.position - 16 : split.position] == sync
        assert 0 <= split.records_to_skip < 30
        harness.close()

    def test_read_with_another_schema(self, fakes, tmp_path):
        write_avro(tmp_path / "a.avro", [1])
        fields = [{"name": "name", "type": "string"}, {"name": "size", "type": "int", "default": 7}]
        wanted = json.dumps({**AVRO, "fields": fields})
        records = fakes.SourceHarness(source_of(AvroBulkFormat(wanted), tmp_path)).run().records
        assert records == [{"name": "n1", "size": 7}]
        unfit = json.dumps({**AVRO, "fields": [{"name": "size", "type": "int"}]})
        harness = fakes.SourceHarness(source_of(AvroBulkFormat(unfit), tmp_path, policy=BadRecords.drop()))
        with pytest.raises(FileReadError, match="schema"):
            harness.run()
        harness.close()
        with pytest.raises(InvalidProgramError, match="Avro"):
            AvroBulkFormat("{}")

    def test_files_without_records_or_without_anything(self, fakes, tmp_path):
        write_avro(tmp_path / "a.avro", [])
        (tmp_path / "b.avro").touch()
        assert fakes.SourceHarness(source_of(AvroBulkFormat(), tmp_path)).run().records == []

    @pytest.mark.parametrize("content", [b"Obj\x01", b"Obj\x01\x02\x10avro", b"hello, I am a text"])
    def test_what_is_no_avro_is_named(self, fakes, tmp_path, content):
        (tmp_path / "a.avro").write_bytes(content)
        harness = fakes.SourceHarness(source_of(AvroBulkFormat(), tmp_path))
        with pytest.raises(FileReadError, match=r"a\.avro") as caught:
            harness.poll()
        assert caught.value.path.endswith("a.avro")
        harness.close()

    @pytest.mark.parametrize("damage", ["content", "size", "sync", "cut"])
    def test_a_damaged_block_is_a_bad_record(self, fakes, tmp_path, damage):
        path = tmp_path / "a.avro"
        write_avro(path, range(90), codec="deflate", sync_interval=100)
        data = bytearray(path.read_bytes())
        with path.open("rb") as file:
            blocks = [(block.offset, block.size, block.num_records) for block in fastavro.block_reader(file)]
        offset, size, count = blocks[1]
        if damage == "content":
            data[offset + 10 : offset + 30] = b"\xff" * 20
        elif damage == "size":
            data[offset + 1 : offset + 3] = b"\xfe\x7f"
        elif damage == "sync":
            data[offset + size - 1] ^= 1
        else:
            offset, size, count = blocks[-1]
            del data[-10:]
        path.write_bytes(data)
        failing = fakes.SourceHarness(source_of(AvroBulkFormat(), path))
        with pytest.raises(BadRecordError) as caught:
            failing.run()
        failing.close()
        assert (caught.value.bad_record.source, caught.value.bad_record.offset) == (str(path), offset)
        source = source_of(AvroBulkFormat(), path, policy=BadRecords.side_output(SIDE))
        for polls in range(0, 12, 3):
            first = fakes.SourceHarness(source)
            for _ in range(polls):
                if not first.ended[0]:
                    first.poll(max_records=5)
            second = first.restored().run(5)
            first.close()
            sides = first.outputs[0].sides + second.outputs[0].sides
            assert [bad.offset for _, bad in sides] == [offset]
            read = [record["id"] for record in first.records + second.records]
            lost = len(set(range(90)) - set(read))
            # a marker that cannot be recognized costs the block behind it too
            assert lost == (count + blocks[2][2] if damage == "sync" else count)
            assert len(read) == len(set(read))


class TestParquet:
    def test_columns_that_a_file_lacks_are_null(self, fakes, tmp_path):
        pq.write_table(pa.table({"ID": [1], "extra": [2]}), tmp_path / "a.parquet")
        pq.write_table(pa.table({"name": ["x"], "id": [2]}), tmp_path / "b.parquet")
        rows = fakes.SourceHarness(source_of(ParquetColumnarRowInputFormat(ROW), tmp_path)).run().records
        assert rows == [Row(id=None, name=None), Row(id=2, name="x")]
        loose = ParquetColumnarRowInputFormat(ROW, is_case_sensitive=False)
        rows = fakes.SourceHarness(source_of(loose, tmp_path)).run().records
        assert rows == [Row(id=1, name=None), Row(id=2, name="x")]
        assert source_of(loose, tmp_path).get_produced_type() == ROW
        pq.write_table(pa.table({"ID": [1], "id": [2]}), tmp_path / "a.parquet")
        harness = fakes.SourceHarness(source_of(loose, tmp_path))
        with pytest.raises(InvalidProgramError, match="several columns for 'id'"):
            harness.poll()
        harness.close()

    def test_generic_records_have_nested_dicts(self, fakes, tmp_path):
        table = pa.table({"id": [1], "place": [{"x": 1.5, "tags": ["a"]}], "more": [0]})
        pq.write_table(table, tmp_path / "a.parquet")
        fields = [{"name": "id", "type": "long"}, {"name": "place", "type": {"type": "map", "values": "string"}}]
        wanted = AvroParquetReaders.for_generic_record(AvroSchema({**AVRO, "fields": fields}))
        assert fakes.SourceHarness(source_of(wanted, tmp_path)).run().records == [
            {"id": 1, "place": {"x": 1.5, "tags": ["a"]}}
        ]
        with pytest.raises(InvalidProgramError, match="record"):
            AvroParquetReaders.for_generic_record(AvroSchema("long"))

    @pytest.mark.parametrize("columns", [[], "id"])
    def test_wrong_settings(self, columns):
        with pytest.raises(InvalidProgramError, match="columns"):
            ParquetFormat(columns)
        with pytest.raises(InvalidProgramError, match="ROW_NAMED"):
            ParquetColumnarRowInputFormat(columns)
        with pytest.raises(InvalidProgramError, match="batch size"):
            ParquetColumnarRowInputFormat(ROW, batch_size=0)


def test_new_files_of_every_format_are_found(fakes, tmp_path):
    write_avro(tmp_path / "a.avro", [1, 2])
    source = FileSource.for_bulk_file_format(AvroBulkFormat(), tmp_path).monitor_continuously(1).build()
    harness = fakes.SourceHarness(source)
    for _ in range(5):
        harness.poll()
    write_avro(tmp_path / "b.avro", [3])
    restored = harness.restored()
    for _ in range(5):
        restored.poll()
    assert [record["id"] for record in harness.records + restored.records] == [1, 2, 3]
    harness.close()
    restored.close()


def test_a_file_that_has_become_shorter(fakes, tmp_path):
    write_avro(tmp_path / "a.avro", range(100))
    harness = fakes.SourceHarness(source_of(AvroBulkFormat(), tmp_path))
    harness.poll(max_records=5)
    write_avro(tmp_path / "a.avro", range(3))
    restored = harness.restored()
    with pytest.raises(FileReadError, match="bytes but had") as caught:
        restored.poll()
    assert "changed" in caught.value.hint
    harness.close()
    restored.close()
