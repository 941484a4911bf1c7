"""Keys of a key type, and keys of any picklable type."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from firesteel.api.pickled_key import PickledKey, plain_key
from firesteel.common import Configuration, Row, Types
from firesteel.common.errors import InvalidKeyError
from firesteel.datastream.functions import KeySelector
from firesteel.datastream.streams.key_selection import select_keys
from firesteel.runtime.codegen.functions import direct_call, program_function
from firesteel.runtime.codegen.inlining import find_inline_expressions, register_inline_expressions
from firesteel.runtime.codegen.loops import LoopWriter
from firesteel.testing import collect, test_environment

PERSON = Types.ROW_NAMED(["a"], [Types.INT()])


class Item:
    def __init__(self, names: Any) -> None:
        self.names = names

    def __repr__(self) -> str:
        return f"Item({sorted(self.names)})"


ODD: list[Any] = [None, [1, 2], {"a": None}, {"x"}, float("nan"), (1, [2]), (None,), Item({"a", "b"})]


@pytest.mark.parametrize("key", ODD, ids=repr)
def test_a_key_without_canonical_form_equals_a_copy_of_itself(key: Any) -> None:
    selector = select_keys(lambda value: value, Types.PICKLED_BYTE_ARRAY(), converts=True)
    assert isinstance(selector, KeySelector)
    selected, again = selector.get_key(key), selector.get_key(copy.deepcopy(key))
    assert selected == again
    assert hash(selected) == hash(again)
    assert repr(plain_key(selected)) == repr(key)


def test_different_keys_have_different_forms() -> None:
    assert len({PickledKey.of(key) for key in [*ODD, [1], (1,), {1: 2}, {2: 1}, "None", [[1], 2], [[1, 2]]]}) == 15


@pytest.mark.parametrize("key", ["a", 1, (1, "x"), b"b", 1.5, Row(1)], ids=repr)
def test_other_keys_stay_as_they_are(key: Any) -> None:
    selector = select_keys(lambda value: value, Types.PICKLED_BYTE_ARRAY(), converts=True)
    assert isinstance(selector, KeySelector)
    assert selector.get_key(key) is key


def test_a_key_is_converted_to_its_type() -> None:
    selector = select_keys(lambda value: value, Types.TUPLE([Types.INT(), Types.FLOAT()]), converts=True)
    assert isinstance(selector, KeySelector)
    assert selector.get_key((1.7, 0.1)) == (1, 0.10000000149011612)
    with pytest.raises(InvalidKeyError, match=r"The key does not fit its declared type .*Integer expects an int"):
        selector.get_key(("x", 1))


def test_without_a_key_type_the_selector_is_that_of_the_program() -> None:
    def select(value: Any) -> Any:
        return value

    assert select_keys(select, None, converts=True) is select
    assert select_keys(select, Types.INT(), converts=False) is select


def outcome(select: Any, key: Any) -> Any:
    try:
        return select(key)
    except InvalidKeyError as error:
        return error.message


@pytest.mark.parametrize("key_type", [Types.PICKLED_BYTE_ARRAY(), Types.LONG(), Types.TUPLE([Types.LONG()]), PERSON])
def test_generated_code_selects_the_same_keys(key_type: Any) -> None:
    selector: Any = select_keys(lambda value: value, key_type, converts=True)
    direct = direct_call(selector.get_key)
    for key in [1, -(2**63), 1.7, True, None, (1,), (2.5,), Row(a=1), "text", 2**64]:
        assert repr(outcome(direct, key)) == repr(outcome(selector.get_key, key))


def test_the_selector_of_the_program_is_inlined_into_the_loop() -> None:
    selector: Any = select_keys(lambda pair: pair[0], Types.LONG(), converts=True)
    register_inline_expressions(find_inline_expressions([program_function(selector)]))
    writer = LoopWriter(with_timestamps=False, checked=False)
    text = writer.call(selector.get_key, "v0")
    assert "(r1 := (v0[0])).__class__ is int" in text


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_typed_keys_of_a_job(mode: str) -> None:
    env = test_environment(2)
    env.configure(Configuration.from_dict({"pipeline.convert-typed-records": "true", "execution.runtime-mode": mode}))
    records = env.from_collection([(1, 10), (1.9, 20), (True, 30), (2, 40)])
    keyed = records.key_by(lambda pair: pair[0], Types.LONG()).map(lambda pair: pair[1])
    summed = records.key_by(lambda pair: pair[0], Types.LONG()).reduce(lambda a, b: (int(a[0]), a[1] + b[1]))
    assert sorted(collect(keyed)) == [10, 20, 30, 40]
    assert max(collect(summed), key=lambda pair: pair[1])[1] == 60
