"""The logical model: names, equality, pickling, and what each target keeps of a type."""

from __future__ import annotations

import doctest
import importlib
import pickle

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import ExternalTypeInfo, LocalTimeTypeInfo, Types, from_logical
from firesteel.formats.avro.schema import AvroSchema, GenericRecordAvroTypeInfo
from firesteel.types import logical as t
from firesteel.types.arrow import from_arrow_schema, to_arrow_schema
from firesteel.types.arrow_decoding import ArrowRecords, record_type
from firesteel.types.arrow_encoding import ArrowBatchEncoder
from firesteel.types.avro import from_avro
from firesteel.types.declared import parse_declared
from firesteel.types.postgres import from_postgres
from firesteel.types.python import expected, fits, python_class
from firesteel.types.spark import UnsupportedTypeError, to_spark
from firesteel.types.text import check_text_type

SUMMARIES = [
    (t.CharType(3), "CHAR(3)"),
    (t.VarCharType(10), "VARCHAR(10)"),
    (t.VarCharType(), "STRING"),
    (t.BooleanType(), "BOOLEAN"),
    (t.BinaryType(4), "BINARY(4)"),
    (t.VarBinaryType(7), "VARBINARY(7)"),
    (t.VarBinaryType(), "BYTES"),
    (t.DecimalType(), "DECIMAL(10, 0)"),
    (t.DecimalType(38, 18), "DECIMAL(38, 18)"),
    (t.DecimalType(None, None), "LEGACY('DECIMAL', 'BigDecimal')"),
    (t.DecimalType(None, 0), "LEGACY('DECIMAL', 'BigInteger')"),
    (t.TinyIntType(), "TINYINT"),
    (t.SmallIntType(), "SMALLINT"),
    (t.IntType(), "INT"),
    (t.BigIntType(), "BIGINT"),
    (t.FloatType(), "FLOAT"),
    (t.DoubleType(), "DOUBLE"),
    (t.DateType(), "DATE"),
    (t.TimeType(), "TIME(0)"),
    (t.TimestampType(), "TIMESTAMP(6)"),
    (t.TimestampType(3, t.TimestampKind.ROWTIME), "TIMESTAMP(3) *ROWTIME*"),
    (t.LocalZonedTimestampType(3), "TIMESTAMP_LTZ(3)"),
    (
        t.LocalZonedTimestampType(3, t.TimestampKind.PROCTIME, nullable=False),
        "TIMESTAMP_LTZ(3) NOT NULL *PROCTIME*",
    ),
    (t.YearMonthIntervalType(), "INTERVAL YEAR(2) TO MONTH"),
    (t.YearMonthIntervalType(t.YearMonthResolution.MONTH), "INTERVAL MONTH"),
    (t.DayTimeIntervalType(), "INTERVAL DAY(2) TO SECOND(6)"),
    (t.DayTimeIntervalType(t.DayTimeResolution.SECOND, 2, 3), "INTERVAL SECOND(3)"),
    (t.ArrayType(t.IntType().not_null()), "ARRAY<INT NOT NULL>"),
    (t.MultisetType(t.VarCharType()), "MULTISET<STRING>"),
    (t.MapType(t.VarCharType(), t.IntType()), "MAP<STRING, INT>"),
    (t.RowType.of(["a", "b`c"], [t.IntType().not_null(), t.DateType()]), "ROW<`a` INT NOT NULL, `b``c` DATE>"),
    (t.RowType((t.RowField("a", t.IntType(), "it's"),), nullable=False), "ROW<`a` INT 'it''s'> NOT NULL"),
    (t.StructuredType.of([t.IntType()]), "*tuple*<`f0` INT>"),
    (t.NullType(), "NULL"),
    (t.VariantType(), "VARIANT"),
    (t.BitmapType(), "BITMAP"),
    (t.RawType(), "RAW('object', '...')"),
]


@pytest.mark.parametrize(("type_", "summary"), SUMMARIES, ids=[summary for _, summary in SUMMARIES])
def test_types_print_as_in_flink_and_equal_only_themselves(type_, summary):
    assert type_.as_summary_string() == str(type_) == summary
    assert pickle.loads(pickle.dumps(type_)) == type_
    assert hash(pickle.loads(pickle.dumps(type_))) == hash(type_)
    assert sum(type_ == other for other, _ in SUMMARIES) == 1
    assert set(vars(pickle.loads(pickle.dumps(type_)))) == set(vars(type_)) - {"_hash"}, "hashes differ by process"
    if type_ != t.NullType():
        assert type_.copy(not type_.nullable) != type_
        assert len({type_, type_.copy(not type_.nullable)}) == 2
        assert type_.copy(not type_.nullable).copy(type_.nullable) == type_
    with pytest.raises(AttributeError):
        type_.nullable = False


def test_every_root_has_a_type():
    assert {type_.root for type_, _ in SUMMARIES} == set(t.LogicalTypeRoot)


@pytest.mark.parametrize(
    "make",
    [
        lambda: t.CharType(-1),
        lambda: t.VarCharType(1 << 31),
        lambda: t.DecimalType(0, 0),
        lambda: t.DecimalType(5, 6),
        lambda: t.DecimalType(None, 2),
        lambda: t.NullType(nullable=False),
        lambda: t.TimeType(10),
        lambda: t.TimestampType(True),
        lambda: t.DayTimeIntervalType(day_precision=0),
        lambda: t.RowType.of(["a", "a"], [t.IntType(), t.IntType()]),
    ],
)
def test_parameters_out_of_range_are_refused(make):
    with pytest.raises(ValueError):
        make()


def test_the_words_of_an_api_are_no_part_of_a_type():
    declared = t.IntType().named("Integer")
    assert declared == t.IntType()
    assert hash(declared) == hash(t.IntType())
    assert str(declared) == "Integer"
    assert declared.as_summary_string() == "INT"


@pytest.mark.parametrize("name", ["arrow", "arrow_decoding", "codec", "declared", "logical", "python", "spark", "text"])
def test_examples(name):
    failed, _ = doctest.testmod(importlib.import_module(f"firesteel.types.{name}"))
    assert failed == 0


# -- type information --------------------------------------------------------------------------------------

LOCAL = LocalTimeTypeInfo.TimeType
FACES = [
    (Types.STRING(), "STRING"),
    (Types.BYTE(), "TINYINT"),
    (Types.BOOLEAN(), "BOOLEAN"),
    (Types.SHORT(), "SMALLINT"),
    (Types.INT(), "INT"),
    (Types.LONG(), "BIGINT"),
    (Types.FLOAT(), "FLOAT"),
    (Types.DOUBLE(), "DOUBLE"),
    (Types.BIG_INT(), "LEGACY('DECIMAL', 'BigInteger')"),
    (Types.BIG_DEC(), "LEGACY('DECIMAL', 'BigDecimal')"),
    (Types.INSTANT(), "TIMESTAMP_LTZ(6)"),
    (Types.SQL_DATE(), "DATE"),
    (Types.SQL_TIME(), "TIME(6)"),
    (Types.SQL_TIMESTAMP(), "TIMESTAMP(6)"),
    (Types.PICKLED_BYTE_ARRAY(), "RAW('object', '...')"),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), "BYTES"),
    (Types.OBJECT_ARRAY(Types.INSTANT()), "ARRAY<TIMESTAMP_LTZ(6)>"),
    (Types.MAP(Types.INT(), Types.BIG_DEC()), "MAP<INT, LEGACY('DECIMAL', 'BigDecimal')>"),
    (Types.ROW([Types.INT(), Types.STRING()]), "ROW<`f0` INT, `f1` STRING>"),
    (Types.ROW_NAMED(["a"], [Types.INT()]), "ROW<`a` INT>"),
    (Types.TUPLE([Types.INT(), Types.LONG()]), "*tuple*<`f0` INT, `f1` BIGINT>"),
]


@pytest.mark.parametrize(("type_info", "summary"), FACES, ids=[summary for _, summary in FACES])
def test_type_information_is_a_face_of_a_logical_type(type_info, summary):
    found = type_info.to_logical()
    assert found.as_summary_string() == summary
    assert str(found) == str(type_info)
    assert from_logical(found) == type_info
    again = from_logical(found).to_logical()
    assert again == found


LOST = [
    (Types.CHAR(), "CHAR(1)", Types.STRING()),
    (Types.LIST(Types.INT()), "ARRAY<INT>", Types.OBJECT_ARRAY(Types.INT())),
    (Types.BASIC_ARRAY(Types.INT()), "ARRAY<INT>", Types.OBJECT_ARRAY(Types.INT())),
    (Types.PRIMITIVE_ARRAY(Types.INT()), "ARRAY<INT NOT NULL>", Types.OBJECT_ARRAY(Types.INT())),
    (LocalTimeTypeInfo(LOCAL.LOCAL_DATE), "DATE", Types.SQL_DATE()),
    (LocalTimeTypeInfo(LOCAL.LOCAL_TIME), "TIME(6)", Types.SQL_TIME()),
    (LocalTimeTypeInfo(LOCAL.LOCAL_DATE_TIME), "TIMESTAMP(6)", Types.SQL_TIMESTAMP()),
    (ExternalTypeInfo(Types.INT()), "INT", Types.INT()),
    (GenericRecordAvroTypeInfo(AvroSchema("int")), "RAW('GenericRecord<int>', '...')", Types.PICKLED_BYTE_ARRAY()),
]


@pytest.mark.parametrize(("type_info", "summary", "again"), LOST, ids=[str(type_info) for type_info, _, _ in LOST])
def test_faces_that_share_a_logical_type(type_info, summary, again):
    assert type_info.to_logical().as_summary_string() == summary
    assert from_logical(type_info.to_logical()) == again


# -- types drawn at random ---------------------------------------------------------------------------------

_LOSSLESS = st.one_of(
    st.sampled_from(
        [
            *(t.VarCharType(), t.BooleanType(), t.VarBinaryType(), t.TinyIntType(), t.SmallIntType(), t.IntType()),
            *(t.BigIntType(), t.FloatType(), t.DoubleType(), t.DateType(), t.DecimalType(None, 0)),
        ]
    ),
    st.builds(t.BinaryType, st.integers(1, 40)),
    st.integers(1, 76).flatmap(
        lambda precision: st.builds(t.DecimalType, st.just(precision), st.integers(0, precision))
    ),
    st.builds(t.TimeType, st.sampled_from([0, 3, 6, 9])),
    st.builds(t.TimestampType, st.sampled_from([0, 3, 6, 9])),
    st.builds(t.LocalZonedTimestampType, st.sampled_from([0, 3, 6, 9])),
    st.builds(
        t.DayTimeIntervalType, st.just(t.DayTimeResolution.DAY_TO_SECOND), st.just(6), st.sampled_from([0, 3, 6, 9])
    ),
)
"""The types that Arrow has too, with all their parameters."""


def _with_nulls(types: st.SearchStrategy[t.LogicalType]) -> st.SearchStrategy[t.LogicalType]:
    return st.builds(lambda type_, nullable: type_.copy(nullable), types, st.booleans())


def _rows(parts: st.SearchStrategy[t.LogicalType]) -> st.SearchStrategy[t.RowType]:
    return st.dictionaries(st.text("abcXYZ_", min_size=1, max_size=4), parts, min_size=1, max_size=4).map(
        lambda found: t.RowType.of(found.keys(), found.values())
    )


def _composed(parts: st.SearchStrategy[t.LogicalType]) -> st.SearchStrategy[t.LogicalType]:
    maps = st.builds(lambda key, value: t.MapType(key.copy(False), value), parts, parts)
    return _with_nulls(st.one_of(st.builds(t.ArrayType, parts), maps, _rows(parts)))


_TYPES = st.recursive(_with_nulls(_LOSSLESS), _composed, max_leaves=6)


@given(_rows(_TYPES))
@settings(max_examples=200, deadline=None)
def test_arrow_keeps_types(type_):
    schema = to_arrow_schema(type_, keeps_not_null=True)
    assert from_arrow_schema(schema) == type_
    assert schema.names == list(type_.field_names)


@given(_rows(_TYPES))
@settings(max_examples=100, deadline=None)
def test_types_survive_pickling_and_have_one_hash(type_):
    again = pickle.loads(pickle.dumps(type_))
    assert again == type_
    assert hash(again) == hash(type_)
    assert again.as_summary_string() == type_.as_summary_string()


@given(_rows(_TYPES))
@settings(max_examples=100, deadline=None)
def test_type_information_keeps_what_targets_need(type_):
    type_info = from_logical(type_)
    assert from_logical(type_info.to_logical()) == type_info
    assert parse_declared(str(type_info)).field_names == type_.field_names
    assert record_type(to_arrow_schema(type_), as_tuples=True) == Types.TUPLE(
        [from_logical(part, Types.LIST) for part in type_.children()]
    )


@given(_rows(_TYPES))
@settings(max_examples=100, deadline=None)
def test_spark_has_a_type_for_each_column(type_):
    from pyspark.sql.types import StructType

    struct = StructType.fromJson(to_spark(_with_short_decimals(type_)))
    assert struct.names == list(type_.field_names)
    assert StructType.fromJson(struct.jsonValue()) == struct


def _with_short_decimals(type_):
    """Spark's decimals have up to 38 digits."""
    if isinstance(type_, t.DecimalType) and (type_.precision or 0) > 38:
        return t.DecimalType(38, min(type_.scale, 38))
    match type_:
        case t.ArrayType():
            return t.ArrayType(_with_short_decimals(type_.element_type))
        case t.MapType():
            return t.MapType(*map(_with_short_decimals, type_.children()))
        case t.RowType():
            return t.RowType.of(type_.field_names, map(_with_short_decimals, type_.children()))
    return type_


# -- what targets lose, or do not have ---------------------------------------------------------------------

ARROW_LOSSES = [
    (t.CharType(3), t.VarCharType()),
    (t.VarCharType(3), t.VarCharType()),
    (t.VarBinaryType(3), t.VarBinaryType()),
    (t.DecimalType(None, None), t.DecimalType(38, 18)),
    (t.TimeType(1), t.TimeType(3)),
    (t.TimestampType(4), t.TimestampType(6)),
    (t.TimestampType(3, t.TimestampKind.ROWTIME), t.TimestampType(3)),
    (t.LocalZonedTimestampType(8), t.LocalZonedTimestampType(9)),
    (
        t.DayTimeIntervalType(t.DayTimeResolution.HOUR, 2, 3),
        t.DayTimeIntervalType(t.DayTimeResolution.DAY_TO_SECOND, 6, 3),
    ),
    (t.MultisetType(t.VarCharType()), t.MapType(t.VarCharType(nullable=False), t.IntType(nullable=False))),
    (t.StructuredType.of([t.IntType()]), t.RowType.of(["f0"], [t.IntType()])),
]


@pytest.mark.parametrize(("type_", "again"), ARROW_LOSSES, ids=[str(type_) for type_, _ in ARROW_LOSSES])
def test_what_arrow_loses(type_, again):
    schema = to_arrow_schema(t.RowType.of(["c"], [type_]), keeps_not_null=True)
    assert from_arrow_schema(schema).children() == (again,)


@pytest.mark.parametrize("type_", [t.RawType(), t.YearMonthIntervalType()], ids=str)
def test_what_arrow_has_no_column_for(type_):
    with pytest.raises(InvalidProgramError, match=r"the type of 'c\[\]\.d', cannot be a column"):
        to_arrow_schema(t.RowType.of(["c"], [t.ArrayType(t.RowType.of(["d"], [type_]))]))


@pytest.mark.parametrize("type_", [t.RawType(), t.MultisetType(t.IntType())], ids=str)
def test_what_spark_has_no_type_for(type_):
    with pytest.raises(UnsupportedTypeError) as caught:
        to_spark(t.RowType.of(["c"], [t.MapType(t.IntType(), type_)]))
    assert caught.value.place == "c.value"
    assert to_spark(type_, {type_.root: "binary"}) == "binary"


def test_columns_take_null_unless_their_types_are_kept():
    type_ = t.RowType.of(["a"], [t.ArrayType(t.IntType().not_null()).not_null()])
    assert to_arrow_schema(type_).field("a").nullable
    kept = to_arrow_schema(type_, keeps_not_null=True, element_name="element").field("a")
    assert not kept.nullable
    assert kept.type == pa.list_(pa.field("element", pa.int32(), nullable=False))


UNLIKE = [
    (pa.uint8(), t.SmallIntType()),
    (pa.uint16(), t.IntType()),
    (pa.uint32(), t.BigIntType()),
    (pa.uint64(), t.DecimalType(None, 0)),
    (pa.float16(), t.FloatType()),
    (pa.large_string(), t.VarCharType()),
    (pa.large_binary(), t.VarBinaryType()),
    (pa.date64(), t.DateType()),
    (pa.dictionary(pa.int8(), pa.string()), t.VarCharType()),
    (pa.large_list(pa.int8()), t.ArrayType(t.TinyIntType())),
    (pa.list_(pa.int8(), 3), t.ArrayType(t.TinyIntType())),
    (pa.struct([]), t.RawType()),
    (pa.month_day_nano_interval(), t.RawType()),
]


@pytest.mark.parametrize(("column", "type_"), UNLIKE, ids=[str(column) for column, _ in UNLIKE])
def test_types_of_arrow_without_a_like(column, type_):
    assert from_arrow_schema(pa.schema([("c", column)])).children() == (type_,)


def test_text_holds_neither_tuples_nor_classes_nor_intervals():
    for type_ in (t.StructuredType.of([]), t.RawType("Point"), t.DayTimeIntervalType(), t.NullType()):
        with pytest.raises(InvalidProgramError, match=r"JSON cannot hold field 'a\.b' of type"):
            check_text_type(type_, "a.b", "JSON")
    for type_ in (t.RawType(nullable=False), t.CharType(3), t.RowType(()), t.BinaryType(2)):
        check_text_type(type_, "a.b", "JSON")


AVRO = [
    ("string", t.VarCharType()),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, t.VarCharType()),
    ({"type": "fixed", "name": "F", "size": 4}, t.BinaryType(4)),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, t.DecimalType(9, 2)),
    ({"type": "int", "logicalType": "time-millis"}, t.TimeType(3)),
    ({"type": "long", "logicalType": "timestamp-millis"}, t.LocalZonedTimestampType(3)),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, t.TimestampType(6)),
    ({"type": "array", "items": ["null", "int"]}, t.ArrayType(t.IntType())),
    ({"type": "map", "values": "long"}, t.MapType(t.VarCharType(nullable=False), t.BigIntType(nullable=False))),
    (["null", "int", "string"], t.RawType()),
    ("null", t.NullType()),
]


@pytest.mark.parametrize(("node", "type_"), AVRO, ids=[str(node) for node, _ in AVRO])
def test_types_of_avro(node, type_):
    schema = AvroSchema({"type": "record", "name": "R", "fields": [{"name": "c", "type": node}]})
    row_type = from_avro(schema, schema.parsed)
    nullable = isinstance(node, list) or node == "null"
    assert row_type == t.RowType.of(["c"], [type_.copy(nullable)], nullable=False)


def test_legacy_types_of_avro_have_neither_zones_nor_precisions():
    stamp = {"type": "long", "logicalType": "timestamp-millis"}
    number = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    schema = AvroSchema(
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": stamp}, {"name": "b", "type": number}]}
    )
    found = from_avro(schema, schema.parsed, legacy=True)
    assert [part.copy(True) for part in found.children()] == [t.TimestampType(3), t.DecimalType(None, None)]


def test_types_of_postgresql():
    assert from_postgres(23) == t.IntType()
    assert from_postgres(1007) == t.ArrayType(t.IntType())
    assert from_postgres(17) == t.VarBinaryType()
    assert from_postgres(1231) == t.ArrayType(t.DecimalType(None, None))
    assert from_postgres(1184) == t.RawType()


def test_classes_of_python():
    assert python_class(t.DecimalType(None, 0)) is int
    assert python_class(t.DecimalType(5, 2)) is python_class(t.DecimalType(None, None))
    assert python_class(t.ArrayType(t.IntType())) is None
    assert fits(t.CharType(2), "ab")
    assert not fits(t.CharType(2), "a")
    assert expected(t.TinyIntType()) == "an int from -128 to 127"


def test_records_make_the_way_through_arrow_and_back_for_types_with_precision():
    type_ = t.RowType.of(["a", "b"], [t.DecimalType(5, 2), t.ArrayType(t.TimestampType(3))])
    schema = to_arrow_schema(type_)
    batch = ArrowBatchEncoder(schema).to_batch([(None, []), (None, None)])
    assert [tuple(row) for row in ArrowRecords(schema).decode(batch)] == [(None, []), (None, None)]
