"""Keys and key groups: equal keys meet, every group has one owner, bad keys are refused."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
import subprocess
import sys
import uuid
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import firesteel
from firesteel.common import Row, RowKind
from firesteel.common.errors import InvalidKeyError
from firesteel.runtime.model.key_groups import (
    MAX_KEY_BYTES,
    KeyGroupRange,
    RoutingTable,
    encode_key,
    key_group_of,
    subtask_of,
)
from firesteel.runtime.state.rocksdb.keys import encode_object

parallelisms = st.integers(1, 300).flatmap(lambda most: st.tuples(st.just(most), st.integers(1, most)))


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Label(str, enum.Enum):
    LOW = "low"

    def __new__(cls, text: str) -> Any:
        member = str.__new__(cls, text)
        member._value_ = f"the label {text}"
        return member


class Rate(float, enum.Enum):
    HALF = 0.5


class Place(tuple, enum.Enum):  # type: ignore[type-arg]
    HOME = (1, 2)


class Holiday(datetime.date, enum.Enum):
    NEW_YEAR = 2024, 1, 1


class Word(str):
    pass


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: float
    label: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True)
class Wrapped:
    row: Row


UTC = datetime.timezone.utc


def hours(offset: int) -> datetime.timezone:
    return datetime.timezone(datetime.timedelta(hours=offset), "somewhere")


class Undecided(datetime.tzinfo):
    """A zone without an offset: whatever has it counts as naive."""

    def utcoffset(self, _moment: datetime.datetime | None) -> None:
        return None


class TwiceAnHour(datetime.tzinfo):
    """A zone in which every hour occurs twice, and which takes both for equal, as all zones do."""

    ZONE: datetime.tzinfo

    def utcoffset(self, moment: datetime.datetime | None) -> datetime.timedelta:
        return datetime.timedelta(hours=1 if moment is None or not moment.fold else 0)


TwiceAnHour.ZONE = TwiceAnHour()  # type: ignore[abstract]


def equal_numbers(value: int) -> list[Any]:
    same: list[Any] = [value, Fraction(value), Decimal(value)]
    if float(value) == value and abs(value) < 2**1000:
        same.append(float(value))
    if value in (0, 1):
        same.append(bool(value))
    return same


@given(st.one_of(st.integers(), st.integers(-(2**70), 2**70), st.sampled_from([0, 1, -1, 2**63, -(2**63)])))
def test_equal_numbers_have_the_same_group(value: int) -> None:
    assert len({encode_key(key) for key in equal_numbers(value)}) == 1
    assert len({encode_key((key, "x")) for key in equal_numbers(value)}) == 1


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_equal_fractions_have_the_same_group(value: float) -> None:
    assert encode_key(value) == encode_key(Fraction(value)) == encode_key(Decimal(value))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0),
        (math.inf, Decimal("Infinity")),
        (Decimal("1.10"), Decimal("1.1")),
        (Decimal("0.5"), 0.5),
        (Fraction(1, 3), Fraction(2, 6)),
        (Level.LOW, 1),
        (Label.LOW, "low"),
        (Rate.HALF, Decimal("0.5")),
        (Place.HOME, (1.0, True + True)),
        (("x", Place.HOME), ("x", (1, 2))),
        (Holiday.NEW_YEAR, datetime.date(2024, 1, 1)),
        ("a", Word("a")),
        (frozenset({1, 2, "a"}), frozenset({"a", 2.0, True})),
        (Row(1, "a"), Row(1.0, "a")),
        (Point(1, 2.0, "here"), Point(1.0, 2, "there")),  # type: ignore[arg-type]
        (
            datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.timezone.utc),
            datetime.datetime(2024, 1, 1, 14, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
        ),
        (datetime.timedelta(hours=24), datetime.timedelta(days=1)),
        (Row(name="Ada", age=36), Row(age=36, name="Ada")),
        (("x", Row(name="Ada", age=36)), ("x", Row(age=36.0, name="Ada"))),
        (Row(p=Row(b=1, a=2), o=None), Row(o=None, p=Row(a=2, b=1))),
        (frozenset({Row(b=1, a=2)}), frozenset({Row(a=2, b=1)})),
        (Wrapped(Row(b=1, a=2)), Wrapped(Row(a=2, b=1))),
        (datetime.time(12, tzinfo=UTC), datetime.time(13, tzinfo=hours(1))),
        (datetime.time(0, 30, tzinfo=hours(1)), datetime.time(1, 30, tzinfo=hours(2))),
        (datetime.time(12, tzinfo=hours(0)), datetime.time(12, tzinfo=UTC)),
        (datetime.time(12, tzinfo=Undecided()), datetime.time(12)),  # type: ignore[abstract]
        (datetime.datetime(2024, 1, 1, tzinfo=Undecided()), datetime.datetime(2024, 1, 1)),  # type: ignore[abstract] # noqa: DTZ001
        (
            datetime.datetime(2024, 10, 27, 2, 30, tzinfo=TwiceAnHour.ZONE),
            datetime.datetime(2024, 10, 27, 2, 30, tzinfo=TwiceAnHour.ZONE, fold=1),
        ),
        (
            datetime.datetime(1, 1, 1, 0, 30, tzinfo=hours(1)),
            datetime.datetime(1, 1, 1, 1, 30, tzinfo=hours(2)),
        ),
    ],
)
def test_other_equal_keys_have_the_same_group(one: Any, other: Any) -> None:
    assert one == other
    assert encode_key(one) == encode_key(other)


keys = st.recursive(
    st.one_of(
        st.text(), st.binary(), st.integers(), st.floats(allow_nan=False), st.booleans(), st.uuids(), st.dates(),
        st.decimals(allow_nan=False, allow_infinity=False), st.sampled_from(Colour), st.timedeltas(), st.fractions(),
    ),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3) | st.tuples(inner),
    max_leaves=4,
)  # fmt: skip


def row_of(names: list[str], values: list[Any]) -> Row:
    row = Row(*values)
    row.set_field_names(names)
    return row


@st.composite
def equal_pairs(draw: st.DrawFn, depth: int = 2) -> tuple[Any, Any]:
    """Two keys that are equal, said in different ways."""
    kinds = ["number", "time", "datetime", "plain"] + (["row", "named", "tuple", "set"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "number":
        numbers = equal_numbers(draw(st.integers(-3, 300)))
        return draw(st.sampled_from(numbers)), draw(st.sampled_from(numbers))
    if kind == "time":
        minute, (one, other) = draw(st.integers(0, 59)), draw(st.tuples(st.integers(-5, 5), st.integers(-5, 5)))
        hour = draw(st.integers(5, 18))
        return tuple(datetime.time(hour + zone, minute, tzinfo=hours(zone)) for zone in (one, other))  # type: ignore[return-value]
    if kind == "datetime":
        moment = draw(st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2100, 1, 1)))  # noqa: DTZ001
        zones = draw(st.tuples(st.integers(-5, 5), st.integers(-5, 5)))
        return tuple(moment.replace(tzinfo=UTC).astimezone(hours(zone)) for zone in zones)  # type: ignore[return-value]
    if kind == "plain":
        value = draw(st.one_of(st.text(max_size=8), st.binary(max_size=3), st.none(), st.times(), st.uuids()))
        return value, value
    pairs = draw(st.lists(equal_pairs(depth - 1), max_size=3))
    ones, others = [one for one, _ in pairs], [other for _, other in pairs]
    if kind == "row":
        return Row(*ones), Row(*others)
    if kind == "tuple":
        return tuple(ones), tuple(others)
    if kind == "set":
        return frozenset(ones), frozenset(others)
    names = draw(
        st.lists(st.text("abcé", min_size=1, max_size=2), min_size=len(pairs), max_size=len(pairs), unique=True)
    )
    order = draw(st.permutations(range(len(pairs))))
    one, other = row_of(names, ones), row_of([names[i] for i in order], [others[i] for i in order])  # type: ignore[assignment]
    row_kind = draw(st.sampled_from(RowKind))
    one.set_row_kind(row_kind)  # type: ignore[attr-defined]
    other.set_row_kind(row_kind)  # type: ignore[attr-defined]
    return one, other


@settings(max_examples=500)
@given(equal_pairs().filter(lambda pair: pair[0] is not None))
def test_equal_keys_have_equal_bytes(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert one == other
    assert encode_key(one) == encode_key(other)
    assert encode_object(one) == encode_object(other), "in RocksDB as well"


@settings(max_examples=500)
@given(equal_pairs(), equal_pairs())
def test_different_keys_have_different_rows_in_rocksdb(pair: tuple[Any, Any], another: tuple[Any, Any]) -> None:
    one, other = pair[0], another[1]
    assert (encode_object(one) == encode_object(other)) is (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Row("Ada", 36), Row(name="Ada", age=36)),
        (Row(a=1, b=2), Row(a=1, c=2)),
        (Row(1), Row.of_kind(RowKind.DELETE, 1)),
        (Row(a=1), Row.of_kind(RowKind.UPDATE_AFTER, a=1)),
        (datetime.time(12), datetime.time(12, tzinfo=UTC)),
    ],
)
def test_rows_that_differ_in_names_or_kind_are_apart_in_rocksdb(one: Any, other: Any) -> None:
    assert one != other
    assert encode_object(one) != encode_object(other)


def test_what_was_encoded_canonically_before_stays_as_it_was() -> None:
    """State of such keys is found again: these are the bytes of the first version."""
    assert (
        encode_key(Row("a", 1))
        == encode_key(Row(x="a", y=1))
        == (b"R(" + b"\x02\0\0\0sa" + b"\x08\0\0\0" + (1).to_bytes(8, "little"))
    )
    assert encode_key(datetime.time(12, tzinfo=UTC)) == b"d12:00:00+00:00"
    assert encode_key(datetime.datetime(2024, 1, 1, 14, tzinfo=hours(2))) == b"d2024-01-01T12:00:00+00:00"
    assert encode_object(Row("a", 1)) == b"R" + b"\0\0\0\x02sa" + b"\0\0\0\x09i" + (1).to_bytes(8, "little")


@given(st.tuples(keys, keys))
def test_keys_are_equal_exactly_when_their_bytes_are(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert (encode_key(one) == encode_key(other)) is (one == other)


@given(st.lists(st.text(), min_size=1), st.lists(st.text(), min_size=1))
def test_nested_keys_do_not_run_together(one: list[str], other: list[str]) -> None:
    assert (encode_key(tuple(one)) == encode_key(tuple(other))) is (one == other)


def test_groups_are_the_same_in_another_process() -> None:
    values: list[Any] = ["a", 1, 2.5, ("x", 7), b"\x00", frozenset({"a", "b", "c"}), uuid.UUID(int=5), 2**80]
    root = Path(firesteel.__file__).parents[1]
    code = (
        "import uuid; from firesteel.runtime.model.key_groups import key_group_of; "
        "print([key_group_of(key, 128) for key in ['a', 1, 2.5, ('x', 7), b'\\x00', "
        "frozenset({'a', 'b', 'c'}), uuid.UUID(int=5), 2**80]])"
    )
    for seed in ("1", "2"):
        printed = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=root,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
        ).stdout
        assert printed.strip() == str([key_group_of(key, 128) for key in values])


@pytest.mark.parametrize(
    "make",
    [lambda i: i, lambda i: f"customer-{i}", lambda i: (i // 100, i % 100), lambda i: i * 1000, lambda i: i / 7],
)
def test_keys_spread_evenly_over_the_groups(make: Any) -> None:
    counts = Counter(key_group_of(make(i), 128) for i in range(12_800))
    assert set(counts) == set(range(128))
    assert max(counts.values()) < 200, "a group has twice its share"


@given(parallelisms)
def test_ranges_cover_every_group_exactly_once(numbers: tuple[int, int]) -> None:
    max_parallelism, parallelism = numbers
    ranges = [KeyGroupRange.of(subtask, max_parallelism, parallelism) for subtask in range(parallelism)]
    assert [group for owned in ranges for group in owned] == list(range(max_parallelism))
    sizes = [len(owned) for owned in ranges]
    assert max(sizes) - min(sizes) <= 1
    for subtask, owned in enumerate(ranges):
        for group in owned:
            assert group in owned
            assert subtask_of(group, max_parallelism, parallelism) == subtask
        assert owned.start - 1 not in owned
        assert owned.end + 1 not in owned


@given(parallelisms, st.lists(st.one_of(st.integers(), st.text(), st.tuples(st.text(), st.integers()))))
def test_the_routing_table_sends_a_key_to_the_owner_of_its_group(
    numbers: tuple[int, int], some_keys: list[Any]
) -> None:
    max_parallelism, parallelism = numbers
    table = RoutingTable(list(range(parallelism)), max_parallelism, lambda: 0)
    for key in some_keys + some_keys:
        assert table[key] == subtask_of(key_group_of(key, max_parallelism), max_parallelism, parallelism)


def test_the_routing_table_is_bounded_and_still_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoutingTable, "CAPACITY", 10)
    monkeypatch.setattr(RoutingTable, "BYPASS", 100)
    table = RoutingTable(list(range(3)), 128, lambda: 0)
    for key in range(1000):
        assert table[key] == subtask_of(key_group_of(key, 128), 128, 3)
        assert len(table) <= 10


def test_a_routing_table_that_is_of_no_use_stays_empty_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoutingTable, "CAPACITY", 10)
    monkeypatch.setattr(RoutingTable, "BYPASS", 100)
    records = 0
    table = RoutingTable([0], 128, lambda: records)
    sizes = []
    for key in range(240):
        records += 1
        assert table[key] == 0
        sizes.append(len(table))
    assert sizes[9:20] == [10] * 11
    assert sizes[21:120] == [0] * 99
    assert max(sizes[122:]) == 10


def test_a_routing_table_that_is_of_use_follows_new_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoutingTable, "CAPACITY", 10)
    records = 0
    table = RoutingTable([0], 128, lambda: records)
    for key in range(21):
        records += 10  # each key comes ten times: nine hits
        assert table[key] == 0
    assert len(table) == 0
    assert table["new"] == 0
    assert "new" in table


class ByIdentity:
    pass


@dataclasses.dataclass
class Mutable:
    x: int


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (None, "None"),
        (math.nan, "NaN"),
        (Decimal("NaN"), "NaN"),
        (("a", math.nan), "NaN"),
        ([1], "unhashable"),
        ({"a": 1}, "unhashable"),
        ({1}, "unhashable"),
        (("a", [1]), "unhashable"),
        (Mutable(1), "unhashable"),
        (ByIdentity(), "no stable form"),
        (object, "no stable form"),
        (("a", lambda x: x), "no stable form"),
        ("x" * (MAX_KEY_BYTES + 1), "bytes long"),
        (("x" * MAX_KEY_BYTES,), "bytes long"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else type(value).__name__,
)
def test_a_bad_key_is_refused_with_a_hint(key: Any, says: str) -> None:
    with pytest.raises(InvalidKeyError) as caught:
        key_group_of(key, 128)
    assert says in caught.value.message
    assert caught.value.hint
    if isinstance(key, (str, tuple)) or key is None:
        with pytest.raises((InvalidKeyError, TypeError)):
            RoutingTable([0], 128, lambda: 0)[key]


def test_none_may_be_a_part_of_a_key() -> None:
    assert encode_key(("a", None)) != encode_key(("a", 0))
    assert encode_key(Row(None, 1)) == encode_key(Row(None, 1))


def test_a_key_of_the_greatest_size_is_allowed() -> None:
    assert 0 <= key_group_of("x" * (MAX_KEY_BYTES - 1), 128) < 128
