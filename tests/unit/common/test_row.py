from __future__ import annotations

import copy
import pickle

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Row, RowKind


def test_positions_names_and_attributes():
    row = Row(name="Alice", age=11)
    assert (row[0], row["age"], row.name, row[-1], row[0:2]) == ("Alice", 11, "Alice", 11, ["Alice", 11])
    assert len(row) == 2
    assert list(row) == ["Alice", 11]


def test_a_row_without_names():
    row = Row("Alice", 11)
    assert row[1] == 11
    assert "Alice" in row
    assert "name" not in row
    assert row.get_field_names() is None
    with pytest.raises(ValueError, match="positions only"):
        row["name"]
    with pytest.raises(AttributeError):
        _ = row.name
    with pytest.raises(TypeError):
        row.as_dict()


def test_contains_looks_at_names():
    row = Row(name="Alice")
    assert "name" in row
    assert "Alice" not in row


def test_unknown_fields():
    row = Row(name="Alice")
    with pytest.raises(ValueError, match="'x' is not one of the fields name"):
        row["x"]
    with pytest.raises(AttributeError):
        _ = row.x
    with pytest.raises(IndexError):
        row[5]


def test_values_and_names_together_are_refused():
    with pytest.raises(ValueError):
        Row(1, a=2)


def test_setting_fields():
    row = Row(a=1, b=2)
    row[0] = 10
    row["b"] = 20
    assert row.as_dict() == {"a": 10, "b": 20}
    with pytest.raises(ValueError):
        row["c"] = 1
    with pytest.raises(AttributeError):
        row.a = 1


def test_a_row_of_names_makes_rows():
    person = Row("name", "age")
    assert person("Alice", 11) == Row(name="Alice", age=11)
    assert person("Alice") == Row(name="Alice")
    with pytest.raises(ValueError, match="names 2 fields, got 3"):
        person(1, 2, 3)


def test_as_dict_recursive():
    row = Row(key=1, value=Row(a=2), items=[Row(b=3)], by={"k": Row(c=4)})
    assert row.as_dict()["value"] == Row(a=2)
    assert row.as_dict(True) == {"key": 1, "value": {"a": 2}, "items": [{"b": 3}], "by": {"k": {"c": 4}}}


def test_repr():
    assert repr(Row(name="Alice", age=11)) == "Row(name='Alice', age=11)"
    assert repr(Row("Alice", Row(1), None)) == "<Row('Alice', <Row(1)>, None)>"
    assert repr(Row()) == "<Row()>"


def test_set_field_names():
    row = Row(1, 2)
    row.set_field_names(["a", "b"])
    assert row == Row(a=1, b=2)
    assert row.get_field_names() == ["a", "b"]


def test_get_fields_by_names():
    row = Row(a=1, b=2)
    assert row.get_fields_by_names(["b", "a"]) == [2, 1]
    assert Row(1, 2).get_fields_by_names(["x", "y"]) == [1, 2]
    with pytest.raises(ValueError, match="no field 'c'"):
        row.get_fields_by_names(["c"])


def test_kinds():
    row = Row.of_kind(RowKind.DELETE, 1)
    assert row.get_row_kind() is RowKind.DELETE
    assert row != Row(1)
    row.set_row_kind(RowKind.INSERT)
    assert row == Row(1)
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]
    assert Row.of_kind(RowKind.DELETE, "a", "b")(1, 2).get_row_kind() is RowKind.DELETE


def test_equality_ignores_the_order_of_names_and_hash_agrees():
    one, other = Row(a=1, b=2), Row(b=2, a=1)
    assert one == other
    assert hash(one) == hash(other)
    assert one != Row(a=2, b=1)
    assert one != Row(1, 2)
    assert one != Row(a=1, c=2)
    assert Row(1, 2) != (1, 2)
    assert Row(1, 2) != Row(2, 1)


def test_rows_as_keys():
    counts = {Row(1, "a"): "x"}
    assert counts[Row(1, "a")] == "x"
    with pytest.raises(TypeError):
        hash(Row([1]))


ROWS = [
    Row(),
    Row(1, "a", None),
    Row(a=1, b=[1, 2]),
    Row.of_kind(RowKind.UPDATE_AFTER, 1),
    Row.of_kind(RowKind.DELETE, a=1),
    Row(a=Row(1), b=Row(c=2)),
]


@pytest.mark.parametrize("row", ROWS, ids=repr)
@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_pickling(row, dumps):
    again = pickle.loads(dumps(row))
    assert again == row
    assert again.get_row_kind() is row.get_row_kind()
    assert again.get_field_names() == row.get_field_names()


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_copies(row):
    assert copy.copy(row) == row
    assert copy.deepcopy(row) == row


def test_a_copy_does_not_share_its_values():
    row = Row(a=1)
    copied = copy.copy(row)
    copied["a"] = 2
    assert row.a == 1


def test_a_batch_carries_the_names_of_its_rows_once():
    batch = pickle.dumps([Row(a_rather_long_name=i) for i in range(100)])
    assert batch.count(b"a_rather_long_name") == 1


def test_a_field_may_be_called_like_a_method():
    assert Row.of_kind(RowKind.INSERT, self=1, row_kind=2)["self"] == 1
    row = Row(as_dict=1, get_row_kind=2)
    assert row["as_dict"] == 1
    assert row.as_dict() == {"as_dict": 1, "get_row_kind": 2}


@given(st.dictionaries(st.text(min_size=1), st.integers() | st.text() | st.none(), min_size=1))
def test_named_rows_behave_like_their_dict(fields):
    row = Row(**fields)
    assert row.as_dict() == fields
    assert pickle.loads(pickle.dumps(row)) == row
    assert all(row[name] == value for name, value in fields.items())
    backwards = Row(**dict(reversed(fields.items())))
    assert backwards == row
    assert hash(backwards) == hash(row)
