"""Expressions of the Table API over rows of the program."""

import decimal

from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expression import (
    JsonExistsOnError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
    TimeIntervalUnit,
    TimePointUnit,
)
from pyflink.table.expressions import (
    and_,
    array,
    atan2,
    call,
    call_sql,
    coalesce,
    col,
    concat,
    concat_ws,
    convert_tz,
    date_format,
    e,
    from_unixtime,
    if_then_else,
    json_string,
    lit,
    log,
    map_,
    map_from_arrays,
    negative,
    not_,
    null_of,
    or_,
    pi,
    range_,
    row,
    temporal_overlaps,
    timestamp_diff,
    to_date,
    to_timestamp,
    with_columns,
    without_columns,
)

table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
table_env.get_config().set("parallelism.default", "1")
table_env.get_config().set("table.local-time-zone", "UTC")
fields = [
    DataTypes.FIELD("i", DataTypes.INT()),
    DataTypes.FIELD("n", DataTypes.BIGINT()),
    DataTypes.FIELD("x", DataTypes.DOUBLE()),
    DataTypes.FIELD("d", DataTypes.DECIMAL(10, 2)),
    DataTypes.FIELD("s", DataTypes.STRING()),
    DataTypes.FIELD("b", DataTypes.BOOLEAN()),
    DataTypes.FIELD("a", DataTypes.ARRAY(DataTypes.INT())),
    DataTypes.FIELD("j", DataTypes.STRING()),
]
rows = [
    (1, 10, 0.5, decimal.Decimal("1.25"), "Hello World", True, [3, 1, 2, 3], '{"a": 1, "b": [1, 2], "c": null}'),
    (-7, 2**40, -2.25, decimal.Decimal("-3.50"), "ábc", False, [], '["x"]'),
    (None, None, None, None, None, None, None, "nothing"),
]
table = table_env.from_elements(rows, DataTypes.ROW(fields))


shown = []


def show(name, *expressions):
    shown.extend((f"{name} {index}", expression) for index, expression in enumerate(expressions))


i, n, x, d, s, b, a, j = (col(field.name) for field in fields)
show("arithmetic", i + 1, 1 + i, i - 2, 10 - i, i * 3, i / 2, 7 / lit(2), i % 3, i**2, 2**i, -i, negative(n), abs(i))
show("types", i + n, i + x, i + d, d * d, d / 3, n / 3, x / 3, lit(1.5) + 1, lit(2**40), lit(True), lit("abc"))
show("strings", s + "!", "<" + s.if_null("-"), s + i, lit("n=") + n.if_null(0))
show("numbers", x.abs, x.exp, (x * x).sqrt, x.sign, x.round(1), d.truncate(1), x.floor(), x.ceil(), d.floor(), i.sin)
show(
    "logs", (x * x).ln, (x * x).log10, (x * x).log2, (x * x).log(), log(x * x, 2), lit(8).log(2), pi(), e(), atan2(x, 2)
)
show("bases", i.bin, n.hex, s.hex, lit("4D").unhex.cast(DataTypes.STRING()))
show("comparisons", i == 1, i != 1, i < 1, i > 1, i <= 1, i >= 1, s == "ábc", i.between(0, 5), i.not_between(0, 5))
show("in", i.in_(1, 2, 3), s.in_("x", "ábc"), ~i.in_(1))
show("logic", b & (i > 0), b | (i > 0), ~b, not_(b), and_(b, i > 0, n > 5), or_(b, i > 0, n > 5), True & b)
show("nulls", i.is_null, i.is_not_null, b.is_true, b.is_false, b.is_not_true, b.is_not_false, i.if_null(0))
show("choices", (i > 0).then("yes", "no"), if_then_else(b, 1, 2.5), coalesce(i, 5), null_of(DataTypes.INT()))
show(
    "casts",
    i.cast(DataTypes.STRING()),
    x.cast(DataTypes.INT()),
    s.try_cast(DataTypes.INT()),
    d.cast(DataTypes.DOUBLE()),
)
show("text", s.upper_case, s.lower_case, s.init_cap, s.char_length, s.substring(2), s.substring(2, 3), s.substr(1, 2))
show(
    "trims",
    lit("  x ").trim() + "|",
    lit("xxax").trim_leading("x"),
    lit("xax").trim_trailing("x"),
    lit("xax").trim("x"),
)
show("other trims", lit(" x ").ltrim() + "|", lit(" x ").rtrim() + "|", lit(" x ").btrim(), lit("xyax").ltrim("xy"))
show("finds", s.like("Hel%"), lit("a_b").like("a!_b", "!"), s.similar("(H|ä).*"), lit("o").position(s), s.instr("l"))
show("more finds", lit("l").locate(s), lit("l").locate(s, 5), s.starts_with("He"), s.ends_with("bc"), s.regexp("[A-Z]"))
show(
    "pads",
    s.lpad(3, "-"),
    s.rpad(13, "-"),
    s.overlay("XX", 2),
    s.overlay("XX", 2, 4),
    s.repeat(2),
    s.reverse,
    s.left(2),
)
show("regexps", s.regexp_replace("l+", "L"), s.regexp_extract("(o)(.)", 2), s.regexp_count("o"), s.regexp_instr("o"))
show("replaces", s.replace("o", "0"), s.translate("lo", "01"), s.split_index(" ", 1), s.right(2))
show(
    "encodings",
    s.to_base64,
    s.to_base64.from_base64,
    s.encode("UTF-8").decode("UTF-8"),
    s.url_encode(),
    lit("a%20b").url_decode(),
)
show("hashes", s.md5, s.sha1, s.sha256, s.sha2(224))
show(
    "urls",
    lit("http://h/p?q=1").parse_url("HOST"),
    lit("http://h/p?q=1").parse_url("QUERY", "q"),
    lit("a=1,b=2").str_to_map(),
)
show(
    "concats", concat(s, "-", "x"), concat_ws(",", s, "x"), s.concat("!"), call("UPPER", s), call_sql("UPPER(s) || '?'")
)
show("arrays", a.cardinality, a[1], a.at(2), a.array_contains(3), a.array_position(2))
show(
    "more arrays",
    a.array_append(9),
    a.array_prepend(9),
    a.array_remove(3),
    a.array_union(array(7)),
    a.array_max(),
    a.array_min(),
)
show(
    "made",
    array(1, 2, 3),
    row(1, "x"),
    map_("k", 1, "l", 2),
    map_("k", 1).at("k"),
    row(1, "x").get(1),
    map_from_arrays(array(1), array(2)),
)
show("maps", map_("k", 1).map_keys, map_("k", 1).map_values, map_("k", 1).cardinality, s.split(" "))
show(
    "json",
    j.is_json(),
    j.is_json(JsonType.OBJECT),
    j.json_exists("$.a"),
    j.json_value("$.a", DataTypes.INT()),
    j.json_query("$.b"),
)
show(
    "more json",
    j.json_exists("$.a", JsonExistsOnError.FALSE),
    j.json_value("$.zz", DataTypes.STRING(), JsonValueOnEmptyOrError.DEFAULT, "none"),
    j.json_query("$.a", JsonQueryWrapper.UNCONDITIONAL_ARRAY),
    s.json_quote(),
    json_string(i),
)
day = lit("2024-02-29").to_date
moment = lit("2024-02-29 12:34:56").to_timestamp
show(
    "dates",
    day,
    moment,
    lit("10:11:12").to_time,
    to_date("2024-03-01"),
    to_timestamp("2024-03-01 00:00:01"),
    day + lit(1).day,
)
show("units", *(moment.extract(unit) for unit in (TimeIntervalUnit.YEAR, TimeIntervalUnit.MONTH, TimeIntervalUnit.DAY)))
show(
    "rounded", moment.floor(TimeIntervalUnit.HOUR), moment.ceil(TimeIntervalUnit.DAY), day.floor(TimeIntervalUnit.MONTH)
)
show("intervals", moment + lit(90).minutes, moment - lit(2).weeks, moment + lit(1).quarter, moment + lit(1500).millis)
show(
    "differences",
    timestamp_diff(TimePointUnit.DAY, day, day + lit(30).days),
    timestamp_diff(TimePointUnit.HOUR, moment, moment + lit(1).day),
)
show(
    "overlaps",
    temporal_overlaps(day, lit(2).days, day + lit(1).day, lit(2).days),
    temporal_overlaps(day, lit(1).day, day + lit(5).days, lit(1).day),
)
show(
    "formats",
    date_format(moment, "yyyy/MM/dd"),
    from_unixtime(44),
    convert_tz("1970-01-01 00:00:00", "UTC", "America/Los_Angeles"),
)
for start in range(0, len(shown), 60):
    part = shown[start : start + 60]
    named = [expression.alias(name) for name, expression in part]
    for number, found in enumerate(table.select(*named).execute().collect()):
        for (name, _), value in zip(part, found):
            print(name, number, repr(value))
print(table.select(with_columns(range_("i", "x")), with_columns(range_(5, 6))).get_schema().get_field_names())
print(table.select(without_columns(col("i"), range_("x", "j"))).get_schema().get_field_names())
print(
    table.select(i + 1, i, s.upper_case, i.cast(DataTypes.STRING()), row(1, 2).flatten).get_schema().get_field_names()
)
