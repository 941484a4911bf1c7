"""CSV files as a source: rows, headers, quotes, and lines that are no rows."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from firesteel.api.output_tag import OutputTag
from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row
from firesteel.connectors.files.source import FileEnumeratorProvider, FileSource
from firesteel.datastream.formats.csv import CsvReaderFormat, CsvSchema
from firesteel.filesystem.local_paths import FileReadError
from firesteel.formats.bad_records import BadRecordError, BadRecords
from firesteel.formats.csv import file as csv_file
from firesteel.formats.csv.messages import CsvWriter

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)

SIDE = OutputTag("bad")


def columns(**settings):
    return CsvSchema.of(
        Types.ROW_NAMED(["id", "name", "price"], [Types.LONG(), Types.STRING(), Types.DOUBLE()]), **settings
    )


def source_of(path, schema=None, *, fetch_bytes=None, split_bytes=None, policy=None, **options):
    builder = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema or columns(), **options), path)
    builder.set_file_enumerator(FileEnumeratorProvider(split_bytes))
    if policy is not None:
        builder.set_bad_records(policy)
    source = builder.build()
    source.fetch_bytes = fetch_bytes
    return source


@pytest.fixture
def write(tmp_path):
    def write(content, name="input.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def names_of(harness):
    return [row.name for row in harness.records]


@pytest.mark.parametrize("fetch_bytes", [1, 9, None])
@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("", []),
        ("1,a,1.5\n2,b,2", ["a", "b"]),
        ("1,a,1.5\r\n2,b,2\r\n", ["a", "b"]),
        ("\ufeff1,a,1\n", ["a"]),
        ("1,a,1\n\n\r\n2,b,2\n\n", ["a", "b"]),
        ('1,"a, b",1\n2,"say ""hi""",2\n', ["a, b", 'say "hi"']),
        ('1,"two\nlines",1\n2,b,2\n', ["two\nlines", "b"]),
        ('1,"kept\r\nas it is",1\r\n2,"\n\n",2\r\n', ["kept\r\nas it is", "\n\n"]),
        ('1,5" pipe,1\n2,b,2\n', ['5" pipe', "b"]),
        ('1,"",1\n2,,2\n', ["", ""]),
    ],
)
def test_rows_and_line_ends(fakes, write, content, names, fetch_bytes):
    harness = fakes.SourceHarness(source_of(write(content), fetch_bytes=fetch_bytes)).run()
    assert names_of(harness) == names


def test_a_row_has_the_types_of_its_columns(fakes, write):
    source = source_of(write("7,x,2.5\n"))
    assert fakes.SourceHarness(source).run().records == [Row(id=7, name="x", price=2.5)]
    assert source.get_produced_type() == columns().row_type
    assert repr(source).endswith("CSV with columns id, name, price)")


class TestHeaders:
    @pytest.mark.parametrize("fetch_bytes", [1, 20, None])
    @pytest.mark.parametrize(
        ("content", "names"),
        [
            ("id,name,price\n", []),
            ("id,name,price", []),
            ("\ufeffid,name,price\r\n1,a,1\r\n", ["a"]),
            ('"id","name","price"\n1,a,1\n2,b,2', ["a", "b"]),
        ],
    )
    def test_the_first_line_is_passed_over(self, fakes, write, content, names, fetch_bytes):
        path = write(content)
        for schema in (columns(use_header=True), columns(use_header=True, strict_headers=True)):
            harness = fakes.SourceHarness(source_of(path, schema, fetch_bytes=fetch_bytes))
            for _ in range(2):
                if not harness.ended[0]:
                    harness.poll(max_records=1)
            again = harness.restored().run(1)  # not passed over a second time
            harness.close()
            assert names_of(harness) + names_of(again) == names

    def test_only_in_the_split_that_begins_the_file(self, fakes, write):
        path = write("id,name,price\n" + "".join(f"{i},n{i},0\n" for i in range(50)))
        schema = columns(use_header=True, quote_char=None)
        harness = fakes.SourceHarness(source_of(path, schema, split_bytes=40), 3).run(4)
        assert sorted(row.id for row in harness.records) == list(range(50))
        assert len({split for output in harness.outputs for split in output.released}) > 5

    def test_a_row_more_can_be_passed_over(self, fakes, write):
        schema = columns(use_header=True, skip_first_data_row=True)
        assert names_of(fakes.SourceHarness(source_of(write("id,name,price\nunits,,\n1,a,1"), schema)).run()) == ["a"]

    @pytest.mark.parametrize("fetch_bytes", [1, 9, None])
    @pytest.mark.parametrize("end", ["", "\n", "\n1,a,1\n2,b,2"])
    def test_passed_over_with_all_their_lines(self, fakes, write, end, fetch_bytes):
        path = write('\ufeffid,"name\n(of ""it"")",price\r\nunits,"\n",' + end)
        schema = columns(use_header=True, skip_first_data_row=True)
        harness = fakes.SourceHarness(source_of(path, schema, fetch_bytes=fetch_bytes))
        for _ in range(2):
            if not harness.ended[0]:
                harness.poll(max_records=1)
        again = harness.restored().run(1)
        harness.close()
        assert names_of(harness) + names_of(again) == (["a", "b"] if end[1:] else [])

    @pytest.mark.parametrize("fetch_bytes", [1, None])
    def test_a_quote_that_is_never_closed_spoils_one_line(self, fakes, write, fetch_bytes):
        path = write('id,"name,price\n1,a,1\n2,b,2\n')
        source = source_of(path, columns(use_header=True), fetch_bytes=fetch_bytes)
        assert names_of(fakes.SourceHarness(source).run()) == ["a", "b"]

    def test_a_strict_header_of_several_lines(self, fakes, write):
        row_type = Types.ROW_NAMED(["id", "first\nname"], [Types.LONG(), Types.STRING()])
        schema = CsvSchema.of(row_type, use_header=True, strict_headers=True)
        source = source_of(write('id,"first\nname"\n1,a\n'), schema)
        assert [tuple(row) for row in fakes.SourceHarness(source).run().records] == [(1, "a")]

    def test_a_strict_header_that_is_another_one(self, fakes, write):
        path = write("id,price,name\n1,2,a\n")
        harness = fakes.SourceHarness(source_of(path, columns(use_header=True, strict_headers=True)))
        with pytest.raises(FileReadError, match="header") as caught:
            harness.poll()
        assert caught.value.path == str(path)
        assert "'price'" in caught.value.message
        harness.close()


class TestSplitting:
    def test_quotes_may_hide_line_ends_so_that_a_file_is_whole(self, write):
        path = write("1,a,1\n" * 100)
        splits = FileEnumeratorProvider(50).enumerate_splits
        assert len(splits((path,), CsvReaderFormat.for_schema(columns()))) == 1
        assert len(splits((path,), CsvReaderFormat.for_schema(columns(), multiline=False))) == 12
        assert len(splits((path,), CsvReaderFormat.for_schema(columns(quote_char=None)))) == 12
        assert len(splits((path,), CsvReaderFormat.for_schema(columns(quote_char=None), charset_name="utf-16"))) == 1

    def test_without_rows_of_several_lines_readers_share_a_file(self, fakes, write):
        path = write("".join(f'{i},"a, {i}",0\r\n' for i in range(60)))
        source = source_of(path, split_bytes=70, multiline=False, fetch_bytes=11)
        harness = fakes.SourceHarness(source, 3).run(3)
        assert sorted(names_of(harness)) == sorted(f"a, {i}" for i in range(60))


cells = st.text(st.sampled_from("ab\",;\n\r é\\#'\ufeff"), max_size=8)


@patient
@given(
    rows=st.lists(st.tuples(cells, cells), max_size=12),
    line_end=st.sampled_from(["\n", "\r\n"]),
    fetch_bytes=st.integers(1, 40),
    new_fetch_bytes=st.integers(1, 40),
    polls=st.integers(0, 10),
    compressed=st.booleans(),
)
@example(rows=[('"\n', "")] * 3, line_end="\n", fetch_bytes=1, new_fetch_bytes=7, polls=2, compressed=False)
def test_what_is_written_is_read_once_wherever_reading_stopped(
    fakes, rows, line_end, fetch_bytes, new_fetch_bytes, polls, compressed
):
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(rows)
    schema = CsvSchema.builder().add_string_column("a").add_string_column("b").build()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "input.csv.gz" if compressed else "input.csv")
        data = text.getvalue().encode()
        path.write_bytes(gzip.compress(data) if compressed else data)
        first = fakes.SourceHarness(source_of(path, schema, fetch_bytes=fetch_bytes))
        for _ in range(polls):
            if not first.ended[0]:
                first.poll(max_records=2)
        first.source.fetch_bytes = new_fetch_bytes
        second = first.restored().run(3)
        first.close()
    assert [(row.a, row.b) for row in first.records + second.records] == rows


@patient
@given(
    rows=st.lists(st.tuples(cells, cells), max_size=12),
    dialect=st.sampled_from(
        [
            {"escape_char": "\\"},
            {"escape_char": "\\", "allow_comments": True},
            {"allow_comments": True, "line_separator": "\r\n"},
            {"quote_char": "'", "escape_char": "#"},
        ]
    ),
    fetch_bytes=st.integers(1, 40),
    polls=st.integers(0, 10),
)
@example(rows=[('He said "hello,\nworld"', "#"), ("#", " #")], dialect={"escape_char": "\\"}, fetch_bytes=3, polls=1)
def test_what_the_sink_writes_is_read_once_in_any_dialect(fakes, rows, dialect, fetch_bytes, polls):
    schema = CsvSchema.of(Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.STRING()]), **dialect)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "input.csv")
        path.write_bytes("".join(CsvWriter(schema).write(rows)).encode())
        first = fakes.SourceHarness(source_of(path, schema, fetch_bytes=fetch_bytes))
        for _ in range(polls):
            if not first.ended[0]:
                first.poll(max_records=2)
        second = first.restored().run(3)
        first.close()
    assert [(row.a, row.b) for row in first.records + second.records] == rows


class TestBadLines:
    LINES = "1,a,1\nnot a row\n3,c,3\nx,d,4\n5,e,5\n"

    def test_fail_by_default_with_the_place(self, fakes, write):
        path = write(self.LINES)
        harness = fakes.SourceHarness(source_of(path))
        with pytest.raises(BadRecordError, match="not a row") as caught:
            harness.run()
        bad = caught.value.bad_record
        assert (bad.source, bad.offset, bad.raw) == (str(path), 6, b"not a row")
        assert "set_bad_records" in caught.value.hint
        harness.close()

    @pytest.mark.parametrize("fetch_bytes", [1, 8, None])
    def test_dropped_ones_are_counted(self, fakes, write, fetch_bytes):
        source = source_of(write(self.LINES), policy=BadRecords.drop(), fetch_bytes=fetch_bytes)
        harness = fakes.SourceHarness(source).run(2)
        assert names_of(harness) == ["a", "c", "e"]
        assert harness.contexts[0].counts == {"numRecordsInErrors": 2}
        assert harness.outputs[0].sides == []

    @pytest.mark.parametrize("polls", range(6))
    def test_a_side_output_gets_each_once_also_after_a_restore(self, fakes, write, polls):
        source = source_of(write(self.LINES.replace("\n", "\r\n")), policy=BadRecords.side_output(SIDE))
        first = fakes.SourceHarness(source)
        for _ in range(polls):
            if not first.ended[0]:
                first.poll(max_records=1)
        second = first.restored().run(2)
        first.close()
        sides = first.outputs[0].sides + second.outputs[0].sides
        assert [(tag, bad.raw, bad.offset) for tag, bad in sides] == [(SIDE, b"not a row", 7), (SIDE, b"x,d,4", 25)]
        assert names_of(first) + names_of(second) == ["a", "c", "e"]

    def test_the_place_of_a_row_of_several_lines(self, fakes, write):
        path = write('1,"one\ntwo",1\n2,"no\nprice",x\n3,c,3\n')
        harness = fakes.SourceHarness(source_of(path, policy=BadRecords.side_output(SIDE))).run()
        ((_, bad),) = harness.outputs[0].sides
        assert (bad.offset, bad.raw) == (14, b'2,"no\nprice",x')
        assert names_of(harness) == ["one\ntwo", "c"]

    def test_bytes_that_are_no_text(self, fakes, write):
        path = write(b"1,a,1\n2,na\xefve,2\n3,c,3\n")
        harness = fakes.SourceHarness(source_of(path, policy=BadRecords.side_output(SIDE))).run()
        ((_, bad),) = harness.outputs[0].sides
        assert (bad.raw, bad.offset) == (b"2,na\xefve,2", 6)
        assert names_of(harness) == ["a", "c"]
        failing = fakes.SourceHarness(source_of(path))
        with pytest.raises(FileReadError, match="at byte 10: 0xef"):
            failing.run()
        failing.close()
        latin = fakes.SourceHarness(source_of(path, charset_name="latin-1")).run()
        assert names_of(latin) == ["a", "naïve", "c"]

    @pytest.mark.parametrize("fetch_bytes", [16, None])
    def test_a_quote_that_is_never_closed_spoils_one_line(self, fakes, write, monkeypatch, fetch_bytes):
        monkeypatch.setattr(csv_file, "MAX_RECORD_BYTES", 50)
        lines = "".join(f"{i},n,0\n" for i in range(100))
        source = source_of(write(f'0,"open,0\n{lines}'), policy=BadRecords.side_output(SIDE), fetch_bytes=fetch_bytes)
        harness = fakes.SourceHarness(source).run()
        assert [row.id for row in harness.records] == list(range(100))
        ((_, bad),) = harness.outputs[0].sides
        assert (bad.raw, bad.offset) == (b'0,"open,0', 0)

    def test_comments_are_no_rows(self, fakes, write):
        path = write("# made today\n1,a,1\n#2,b,2\n3,c,3\n")
        assert names_of(fakes.SourceHarness(source_of(path, columns(allow_comments=True))).run()) == ["a", "c"]


def test_escaped_quotes_and_line_ends_in_quotes(fakes, write):
    path = write('1,"a \\" b\nc",1\n2,d,2\n')
    assert names_of(fakes.SourceHarness(source_of(path, columns(escape_char="\\"))).run()) == ['a " b\nc', "d"]


def test_wide_charsets(fakes, write):
    path = write('1,"grün\nπ",1\n2,b,2\n'.encode("utf-16"))
    for fetch_bytes in (1, 3, 8, None):
        source = source_of(path, charset_name="utf-16", fetch_bytes=fetch_bytes)
        assert names_of(fakes.SourceHarness(source).run()) == ["grün\nπ", "b"]


def test_wrong_settings_are_refused(write):
    with pytest.raises(InvalidProgramError, match="CsvSchema"):
        CsvReaderFormat.for_schema("id, name")
    with pytest.raises(InvalidProgramError, match="klingon"):
        CsvReaderFormat.for_schema(columns(), charset_name="klingon")
    builder = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(columns()), write(""))
    with pytest.raises(InvalidProgramError, match="BadRecords"):
        builder.set_bad_records("drop")
    with pytest.raises(InvalidProgramError, match="for_record_stream_format"):
        FileSource.for_bulk_file_format(CsvReaderFormat.for_schema(columns()), write(""))
    with pytest.raises(InvalidProgramError, match="StreamFormat"):
        FileSource.for_record_stream_format(columns(), write(""))
