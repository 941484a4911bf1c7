"""CSV as rows. The tables are what Flink 2.3 does, taken from running it; where we differ, it says so."""

# ruff: noqa: DTZ001 - timestamps without a zone are meant
from __future__ import annotations

import datetime as dt
import math
import pickle
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Row, Types
from firesteel.common.errors import InvalidProgramError, RecordSerializationError
from firesteel.datastream.formats.csv import CsvRowDeserializationSchema, CsvRowSerializationSchema, CsvSchema
from firesteel.formats.csv.messages import CsvParser, CsvWriter
from firesteel.formats.csv.row_ends import RowEnds
from firesteel.types.codec import SchemaMismatchError

ERROR = object()
INT_STRING_STRING = [Types.INT(), Types.STRING(), Types.STRING()]


def named(*types):
    return Types.ROW_NAMED(["a", "b", "c"][: len(types)], list(types))


def row(*values):
    return Row(**dict(zip("abc", values, strict=False)))


def reader(*types, **settings):
    builder = CsvRowDeserializationSchema.Builder(named(*types))
    for name, value in settings.items():
        getattr(builder, name)(value)
    return builder.build()


def writer(*types, **settings):
    builder = CsvRowSerializationSchema.Builder(named(*types))
    for name, value in settings.items():
        getattr(builder, name)(*[] if value is None else [value])
    return builder.build()


def check(schema, table):
    for line, expected in table.items():
        message = line if isinstance(line, bytes) else line.encode()
        if expected is ERROR:
            with pytest.raises(RecordSerializationError):
                pytest.fail(f"{line!r} was read as {schema.deserialize(message)}")
            with pytest.raises(RecordSerializationError):
                schema.deserialize_batch([message])
        else:
            assert schema.deserialize(message) == expected, line
            assert schema.deserialize_batch([message, message]) == [expected, expected]


def test_each_type_reads_what_flink_reads():
    tables = {
        Types.INT(): {"1": 1, " 1 ": 1, '"7"': 7, "1.5": ERROR, "1e3": ERROR, "true": ERROR, "": ERROR, '""': ERROR,
                      "null": ERROR, "x": ERROR, "3000000000": ERROR, "1_0": ERROR},
        Types.LONG(): {"3000000000": 3000000000, str(2**63): ERROR},
        Types.SHORT(): {"-32768": -32768, "32768": ERROR},
        Types.DOUBLE(): {"1": 1.0, " 1 ": 1.0, "1.5": 1.5, "1e3": 1000.0, "": ERROR, "x": ERROR, "1_0": ERROR,
                         "Infinity": math.inf},
        Types.BOOLEAN(): {"true": True, " TRUE ": True, "false": False},
        Types.STRING(): {"1": "1", " 1 ": " 1 ", "": "", '""': "", "null": "null", '"7"': "7", "a\tb": "a\tb"},
        Types.BIG_INT(): {"99999999999999999999": 99999999999999999999, "1.5": ERROR, "": ERROR},
        Types.BIG_DEC(): {"1.10": Decimal("1.10"), "1e3": Decimal("1e3"), "NaN": ERROR, "": ERROR},
        Types.SQL_DATE(): {"2020-01-02": dt.date(2020, 1, 2), "2020-1-2": dt.date(2020, 1, 2), "": ERROR},
        Types.SQL_TIME(): {"12:00:01": dt.time(12, 0, 1), "1:0:1": dt.time(1, 0, 1), "12:00": ERROR},
        Types.SQL_TIMESTAMP(): {"2020-01-02 12:00:01.5": dt.datetime(2020, 1, 2, 12, 0, 1, 500000),
                                "2020-01-02 12:00:01": dt.datetime(2020, 1, 2, 12, 0, 1), "2020": ERROR},
        Types.PRIMITIVE_ARRAY(Types.BYTE()): {"aGk=": b"hi", "!": ERROR},
        Types.BASIC_ARRAY(Types.INT()): {"2;3": [2, 3], "": [], "2": [2], "2; 3": [2, 3], '"2;3"': [2, 3],
                                         "2;;3": ERROR, "a": ERROR},
        Types.OBJECT_ARRAY(Types.STRING()): {"a;;b": ["a", "", "b"], "a; b ;": ["a", " b ", ""]},
        named(Types.INT(), Types.STRING()): {"2;q": row(2, "q"), "2": ERROR, "2;q;3": ERROR, "": None},
    }  # fmt: skip
    ours = {
        # Flink reads all as false
        Types.BOOLEAN(): {"yes": ERROR, "1": ERROR, "": ERROR},
        # Flink refuses these
        Types.SQL_TIME(): {"12:00:01.5": dt.time(12, 0, 1, 500000)},
        Types.SQL_TIMESTAMP(): {"2020-01-02T12:00:01": dt.datetime(2020, 1, 2, 12, 0, 1)},
    }
    for table in (tables, ours):
        for type_info, values in table.items():
            wanted = {f"{text},z": value if value is ERROR else row(value, "z") for text, value in values.items()}
            check(reader(type_info, Types.STRING()), wanted)


def test_lines_as_a_whole():
    check(
        reader(*INT_STRING_STRING),
        {
            "1,x,y": row(1, "x", "y"),
            '1,"a,b",c': row(1, "a,b", "c"),
            '1,"a""b",c': row(1, 'a"b', "c"),
            '1,"a\nb",c': row(1, "a\nb", "c"),
            '1,a"b,c': row(1, 'a"b', "c"),
            '1, x , "y" ': row(1, " x ", ' "y" '),
            "1,x,y\n": row(1, "x", "y"),
            "1,x,y\r\n": row(1, "x", "y"),
            "1,x,y,": row(1, "x", "y"),
            '1,"",': row(1, "", ""),
            "\ufeff1,x,y": row(1, "x", "y"),
            "1,x": ERROR,
            "1,x,y,z": ERROR,
            "": ERROR,
            "\n": ERROR,
            '1,"a"b,c': ERROR,
            '1,"x,y': ERROR,
            "# c": ERROR,
            "1,\\,x,y": ERROR,
            b"1,\xff,y": ERROR,
            "1,x,y\n2,u,v": ERROR,  # Flink reads the first
        },
    )
    check(reader(Types.STRING()), {"x": row("x"), '""': row(""), "x,": row("x"), "": ERROR, '\ufeff"a,b"': row("a,b")})
    assert reader(Types.INT()).deserialize_batch([None, b"1"]) == [None, row(1)]


def test_a_quote_that_is_left_open_does_not_swallow_the_next_message():
    schema = reader(*INT_STRING_STRING, set_ignore_parse_errors=True)
    assert schema.deserialize_batch([b'1,"x,y', b'2,u",v', b"3,a,b"]) == [None, row(2, 'u"', "v"), row(3, "a", "b")]


def test_ignored_errors_become_none_where_they_are():
    check(
        reader(*INT_STRING_STRING, set_ignore_parse_errors=True),
        {
            "x,y,z": row(None, "y", "z"),
            "1,x": row(1, "x", None),
            "1,x,y,z": None,
            '1,"x': None,
            "": None,
            b"\xff": None,
        },
    )


def test_settings():
    check(
        reader(*INT_STRING_STRING, set_null_literal="null"),
        {'null,null,"null"': row(None, None, None), "1,,x": row(1, "", "x")},
    )
    check(reader(*INT_STRING_STRING, set_null_literal=""), {'1,,""': row(1, None, None)})
    check(
        reader(*INT_STRING_STRING, set_allow_comments=True),
        {"1,#x,y": row(1, "#x", "y"), "#1,2,3": None, " #1": None},  # Flink fails for comments in messages
    )
    check(
        reader(*INT_STRING_STRING, set_escape_character="\\"),
        {
            "1,a\\,b,c": row(1, "a,b", "c"),
            '1,"a\\"b",c': row(1, 'a"b', "c"),
            '1,"a,\\\\""b",': row(1, 'a,\\"b', ""),
            "1,a\\nb,c\n": row(1, "a\nb", "c"),
            "1,a\\\\b,\\t": row(1, "a\\b", "\t"),
            "1,b,c\\": ERROR,
            '1,"b\\,c': ERROR,
            '1,"b\\,"c,d': ERROR,
        },
    )
    check(
        reader(*INT_STRING_STRING, set_field_delimiter=";", set_quote_character="'"),
        {"1;'a;b';c": row(1, "a;b", "c"), '1;"a";c': row(1, '"a"', "c")},
    )
    check(
        reader(Types.OBJECT_ARRAY(Types.STRING()), Types.INT(), set_array_element_delimiter="|"),
        {"a||b,1": row(["a", "", "b"], 1)},
    )


def test_a_mismatch_says_which_field_what_was_expected_and_what_came():
    schema = reader(Types.INT(), Types.OBJECT_ARRAY(Types.INT()), named(Types.INT(), Types.INT()))
    for line, field, text in [
        (b"x,1,1;1", "a", "Field 'a': expected an integer of 32 bits, got str 'x'."),
        (b"1,1;x,1;1", "b[]", "Field 'b[]': expected an integer of 32 bits, got str 'x'."),
        (b"1,1,1;x", "c.b", "Field 'c.b': expected an integer of 32 bits, got str 'x'."),
        (b"1,1", "", "Expected 3 columns (a, b, c), got 2: list ['1', '1']."),
    ]:
        with pytest.raises(SchemaMismatchError) as raised:
            schema.deserialize_batch([b"1,1,1;1", line])
        assert (raised.value.field, str(raised.value)) == (field, text)


def test_a_column_may_be_large():
    schema = reader(Types.STRING(), Types.INT())
    text = "x" * 300_000
    assert schema.deserialize(f"{text},1".encode()) == row(text, 1)


def test_rows_are_written_as_flink_writes_them():
    strings = [Types.STRING()] * 3
    for schema, record, line in [
        (writer(*strings), ("x", "y", "z"), "x,y,z\n"),
        (writer(*strings), ("a,b", 'c"d', "e\nf"), '"a,b","c""d","e\nf"\n'),
        (writer(*strings), ("a\rb", "#x", "a;b"), '"a\rb","#x",a;b\n'),
        (writer(*strings), ("a" * 24, "b" * 25, "c-d"), f'{"a" * 24},"{"b" * 25}",c-d\n'),
        (writer(*strings), ("a+b", "(", "{|}~"), '"a+b","(",{|}~\n'),
        (writer(*strings), ("#a", "", "é"), '"#a",,é\n'),
        (writer(*strings), ("", None, " "), ',," "\n'),
        (writer(*strings, set_null_literal="n/a"), (None, "x", "y"), "n/a,x,y\n"),
        (writer(*strings, set_escape_character="\\"), ('a"b', "a\\b", "a,b"), '"a""b","a\\\\b","a,b"\n'),
        (writer(*strings, disable_quote_character=None), ('a"b', "a\\b", "c"), 'a"b,a\\b,c\n'),
        (
            writer(*strings, disable_quote_character=None, set_escape_character="\\"),
            ("a,b", "\n", "\\"),
            "a\\,b,\\n,\\\\\n",
        ),
        (writer(*strings, set_quote_character="'", set_field_delimiter=";"), ("a;b", "'", ","), "'a;b';'''';','\n"),
        (writer(*strings, set_quote_character="'", set_field_delimiter=";"), ("a", "<", '"'), "a;<;'\"'\n"),
        (writer(*strings, set_line_delimiter=""), ("a", "b", "c"), "a,b,c"),
        (writer(*strings, set_line_delimiter="\r\n"), ("a", "b", "c"), "a,b,c\r\n"),
        (writer(Types.STRING()), ("",), '""\n'),
        (writer(Types.STRING(), set_escape_character="\\"), ("",), '""\n'),
        (writer(Types.INT(), Types.DOUBLE(), Types.BOOLEAN()), (1, 1.5, True), "1,1.5,true\n"),
        (writer(Types.INT(), Types.DOUBLE(), Types.BOOLEAN()), (1, math.nan, None), "1,NaN,\n"),
        (writer(Types.INT(), Types.DOUBLE(), Types.BOOLEAN()), (1, 1e7, False), "1,1.0E7,false\n"),
        (writer(Types.INT(), Types.FLOAT(), Types.BOOLEAN()), (1, -math.inf, False), "1,-Infinity,false\n"),
        (writer(Types.BIG_DEC(), Types.BIG_INT()), (Decimal("1E-10"), 10**20), f"1E-10,{10**20}\n"),
        (writer(Types.BIG_DEC(), Types.BIG_DEC()), (Decimal("1.10"), Decimal("0.00")), "1.10,0.00\n"),
        (
            writer(Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP()),
            (dt.date(2020, 1, 2), dt.time(12, 0, 1), dt.datetime(2020, 1, 2, 12)),
            '2020-01-02,12:00:01,"2020-01-02 12:00:00.0"\n',
        ),
        (writer(Types.INT(), Types.OBJECT_ARRAY(Types.STRING())), (1, ["a", "b"]), "1,a;b\n"),
        (writer(Types.INT(), Types.OBJECT_ARRAY(Types.STRING())), (1, ["a b", "c"]), '1,"a b;c"\n'),
        (writer(Types.INT(), Types.OBJECT_ARRAY(Types.INT())), (1, []), "1,\n"),
        (writer(Types.INT(), named(Types.INT(), Types.STRING())), (1, Row(2, "q")), "1,2;q\n"),
        (writer(Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.STRING()), (b"hi", None), "aGk=,\n"),
    ]:
        assert schema.serialize(record) == line.encode()
        as_dict = dict(zip("abc", record, strict=False))
        assert schema.serialize_batch([row(*record), as_dict, list(record)]) == [line.encode()] * 3


def test_records_that_do_not_fit_are_not_written():
    for schema, record, field in [
        (writer(Types.STRING(), Types.INT()), ("x", "y"), "b"),
        (writer(Types.STRING(), Types.INT()), ("x", 1 << 31), "b"),
        (writer(Types.STRING(), Types.INT()), (5, 1), "a"),
        (writer(Types.STRING(), Types.BOOLEAN()), ("x", 1), "b"),
        (writer(Types.INT(), Types.OBJECT_ARRAY(Types.STRING())), (1, ["a;b"]), "b"),  # Flink writes two elements
        (writer(Types.INT(), Types.OBJECT_ARRAY(Types.STRING())), (1, "ab"), "b"),
        (writer(Types.INT(), named(Types.INT())), (1, Row("x")), "b.a"),
        (writer(Types.INT(), Types.STRING(), disable_quote_character=None), (1, "a,b"), "b"),  # Flink writes it so
        (writer(Types.STRING()), ("x", "y"), ""),
        (writer(Types.STRING()), None, ""),
    ]:
        with pytest.raises(SchemaMismatchError) as raised:
            schema.serialize_batch([record])
        assert raised.value.field == field
    with pytest.raises(RecordSerializationError, match="cannot be encoded"):
        writer(Types.STRING()).serialize_batch([("\ud800",)])


def test_types_that_csv_has_not_are_refused():
    for type_info in [
        Types.MAP(Types.STRING(), Types.INT()),
        Types.PICKLED_BYTE_ARRAY(),
        Types.OBJECT_ARRAY(Types.OBJECT_ARRAY(Types.INT())),
        Types.OBJECT_ARRAY(named(Types.INT())),
        named(named(Types.INT())),
        Types.TUPLE([Types.INT()]),
    ]:
        for make in (reader, writer):
            with pytest.raises(InvalidProgramError, match="'a'"):
                make(type_info)
    with pytest.raises(InvalidProgramError, match="type of a row"):
        CsvRowDeserializationSchema.Builder(Types.INT())


def test_settings_that_cannot_be_are_refused():
    for name, value in [
        ("set_field_delimiter", ",,"),
        ("set_field_delimiter", '"'),
        ("set_quote_character", ""),
        ("set_line_delimiter", ";"),
    ]:
        with pytest.raises(InvalidProgramError):
            writer(Types.INT(), **{name: value})


def test_schemas_are_pickled():
    source, sink = pickle.loads(pickle.dumps((reader(Types.INT()), writer(Types.INT()))))
    source.open()
    sink.open()
    source, sink = pickle.loads(pickle.dumps((source, sink)))
    assert source.deserialize(sink.serialize(Row(a=1))) == Row(a=1)
    assert source.get_produced_type() == named(Types.INT())


def schema_of_files(**settings):
    builder = (
        CsvSchema.builder()
        .add_number_column("id", Types.INT())
        .add_string_column("name")
        .add_array_column("tags", "|")
        .add_boolean_column("ok")
    )
    for name, value in settings.items():
        getattr(builder, name)(value)
    return builder.build()


def test_columns_of_a_csv_schema():
    schema = schema_of_files(set_column_separator=";")
    assert schema.column_names == ["id", "name", "tags", "ok"]
    assert len(schema) == 4
    assert schema.row_type.get_field_types()[3] == Types.BOOLEAN()
    assert pickle.loads(pickle.dumps(schema)) == schema
    more = CsvSchema.builder().add_columns_from(schema).add_number_column("n").build()
    assert more.array_separator(2) == "|"
    assert more.row_type.get_field_types()[4] == Types.LONG()
    assert len(CsvSchema.builder().add_string_column("x").clear_columns()) == 0
    with pytest.raises(InvalidProgramError, match="needs columns"):
        CsvSchema.builder().build()
    with pytest.raises(InvalidProgramError, match="unique"):
        CsvSchema.builder().add_string_column("x").add_string_column("x").build()
    with pytest.raises(InvalidProgramError, match="one character"):
        CsvSchema.builder().set_quote_char("''")
    unsplit = CsvSchema.builder().add_array_column("a").add_array_column("b").remove_array_element_separator(0).build()
    assert CsvParser(unsplit).parse(["1;2,1;2"]) == [Row(a=["1;2"], b=["1", "2"])]


def test_lines_of_files():
    parser, writer_ = CsvParser(schema_of_files()), CsvWriter(schema_of_files())
    rows = [Row(id=1, name="x", tags=["a", "b"], ok=True), Row(id=2, name='say "hi"\n', tags=[], ok=False)]
    lines = writer_.write(rows)
    assert lines == ["1,x,a|b,true\n", '2,"say ""hi""\n",,false\n']
    assert parser.parse(lines) == rows
    assert writer_.header() == "id,name,tags,ok\n"


ROWS_OF_LINES = [
    # settings, text, and in how many rows its lines are; a row that is not complete does not count
    ({}, "a,b\nc,d\n", [1, 1]),
    ({}, 'a,"b\nc",d\ne,f\n', [2, 1]),
    ({}, 'a,"b""\n""c",d\n"e"\n', [2, 1]),
    ({}, 'a,5" disk\nb,c\n', [1, 1]),
    ({}, 'a,"b\nc\n', []),
    ({"escape_char": "\\"}, '1,"He said \\"hello,\nworld\\""\n2,plain\n', [2, 1]),
    ({"escape_char": "\\"}, 'a,"x""\ny",b\nc\n', [2, 1]),
    ({"escape_char": "\\"}, 'a,"x\\\\"\nb\n', [1, 1]),
    ({"escape_char": "\\"}, 'a,"x\\"\nb"\nc\n', [2, 1]),
    ({"escape_char": "\\"}, 'a,5" disk\nb,c\n', [1, 1]),
    ({"escape_char": "\\"}, 'a,\\"b\nc,\\"d\n', [1, 1]),
    ({"escape_char": "\\"}, "a,b\\\nc,d\ne\n", [2, 1]),  # as MySQL writes a line end
    ({"escape_char": "\\"}, 'a\\,"b\n"c\nd",e\n', [1, 2]),
    ({"allow_comments": True}, '# 5" disk\na\n', [1, 1]),
    ({"allow_comments": True}, '#,"open\na,"b\n#c"\nd\n', [1, 2, 1]),
    ({"allow_comments": True, "escape_char": "\\"}, '  #,"open\na,"b\n#c"\nd\n', [1, 2, 1]),
    ({"escape_char": '"'}, 'a,"b""\nc",d\ne\n', [2, 1]),
    ({}, 'a,"' + "x" * 100_000 + "\n" + "y" * 100_000 + '"\nb\n', [2, 1]),
]


@pytest.mark.parametrize(("settings", "text", "expected"), ROWS_OF_LINES)
def test_which_lines_belong_to_one_row(settings, text, expected):
    schema = CsvSchema.of(named(Types.STRING(), Types.STRING()), **settings)
    CsvParser(schema)  # lifts the limit of the standard library
    ends, lines = RowEnds(schema), text.splitlines()
    found = list(ends.find(lines, 0))
    assert [end - begin for begin, end in pairwise([0, *found])] == expected
    if expected != [1] * len(lines):
        assert ends.may_span_lines(lines)


def test_an_escape_that_is_the_quote_says_nothing_new():
    schema = CsvSchema.of(named(Types.STRING()), escape_char='"')
    assert schema.escape_char is None
    assert CsvParser(schema).parse(['"a""b"']) == [Row(a='a"b')]


def test_what_a_line_must_not_begin_with():
    settings = {"allow_comments": True}
    texts = ["#", " #x", "\ufeffx", " x", "x#"]
    for more in ({}, {"escape_char": "\\"}, {"escape_char": "\\", "quote_char": None}):
        schema = CsvSchema.of(named(Types.STRING(), Types.STRING()), **settings, **more)
        rows = [Row(a=text, b=text) for text in texts]
        lines = CsvWriter(schema).write(rows)
        assert CsvParser(schema).parse(lines) == rows
        assert not any(line.lstrip(" ")[0] in "#\ufeff" for line in lines)
    bare = CsvWriter(CsvSchema.of(named(Types.STRING()), quote_char=None, **settings))
    for text in texts[:3]:
        with pytest.raises(SchemaMismatchError, match="needs no quotes"):
            bare.write([Row(a=text)])
    # a byte order mark is one at the beginning of a message only
    assert CsvParser(CsvSchema.of(named(Types.STRING()))).parse(["\ufeffx", "y"]) == [Row(a="\ufeffx"), Row(a="y")]
    assert reader(Types.STRING()).deserialize_batch(["\ufeffx".encode(), b"y"]) == [row("x"), row("y")]


@pytest.mark.parametrize("part", [[""], [None]])
def test_an_array_whose_column_would_be_empty_is_refused(part):
    sink = writer(Types.OBJECT_ARRAY(Types.STRING()))
    assert sink.serialize(row([])) == b'""\n'
    with pytest.raises(SchemaMismatchError, match="read as none"):
        sink.serialize(row(part))


def test_headers():
    assert CsvParser(schema_of_files()).lines_to_skip == 0
    parser = CsvParser(schema_of_files(set_use_header=True, set_strict_headers=True, set_skip_first_data_row=True))
    assert parser.lines_to_skip == 2
    parser.check_header("\ufeffid,name,tags,ok")
    with pytest.raises(SchemaMismatchError) as raised:
        parser.check_header("id,nom,tags,ok")
    assert raised.value.field == "name"
    with pytest.raises(SchemaMismatchError, match="3 columns"):
        parser.check_header("id,name,tags")
    CsvParser(schema_of_files(set_use_header=True)).check_header("whatever")


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="\0;"), min_size=1)
SCALARS = [
    (Types.STRING(), TEXT),
    (Types.BOOLEAN(), st.booleans()),
    (Types.INT(), st.integers(-(2**31), 2**31 - 1)),
    (Types.DOUBLE(), st.floats(allow_nan=False)),
    (Types.BIG_DEC(), st.decimals(allow_nan=False, allow_infinity=False)),
    (Types.SQL_DATE(), st.dates(min_value=dt.date(1000, 1, 1))),
    (Types.SQL_TIME(), st.times()),
    (Types.SQL_TIMESTAMP(), st.datetimes(min_value=dt.datetime(1000, 1, 1))),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), st.binary(min_size=1)),
    (Types.OBJECT_ARRAY(Types.STRING()), st.lists(PLAIN)),
    (Types.OBJECT_ARRAY(Types.INT()), st.lists(st.integers(-5, 5))),
    (named(Types.INT(), Types.STRING()), st.builds(row, st.integers(-5, 5), PLAIN)),
]


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from([",", ";", "\t", "|"]), st.sampled_from([None, "\\"]))
def test_what_is_written_can_be_read_again(data, delimiter, escape):
    parts = data.draw(st.lists(st.sampled_from(SCALARS), min_size=1, max_size=3))
    common = {"set_field_delimiter": delimiter, "set_null_literal": "\\N" if escape is None else "NULL"}
    if escape is not None:
        common["set_escape_character"] = escape
    types = [part for part, _ in parts]
    sink, source = writer(*types, **common), reader(*types, **common)
    fields = st.tuples(*[st.none() | values for _, values in parts])
    rows = [row(*values) for values in data.draw(st.lists(fields, max_size=3))]

    messages = sink.serialize_batch(rows)

    assert messages == [sink.serialize(record) for record in rows]
    assert source.deserialize_batch(messages) == rows == [source.deserialize(message) for message in messages]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text('a1,"\n\r;\\# ', max_size=10), max_size=4), st.sampled_from([None, "\\"]))
def test_whatever_comes_is_read_or_refused_the_same_in_batches_and_one_by_one(lines, escape):
    settings_ = {} if escape is None else {"set_escape_character": escape}
    schema = reader(Types.STRING(), Types.STRING(), set_ignore_parse_errors=True, **settings_)
    strict = reader(Types.STRING(), Types.STRING(), **settings_)
    messages = [line.encode() for line in lines]

    singly = [schema.deserialize(message) for message in messages]

    assert schema.deserialize_batch(messages) == singly
    for message, found in zip(messages, singly, strict=True):
        try:
            assert strict.deserialize_batch([message]) == [found]
        except RecordSerializationError:
            assert found is None or found.b is None
