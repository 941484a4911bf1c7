"""Tuples whose fields are all that a generated loop needs are not created."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from firesteel.common.errors import JobExecutionError
from firesteel.runtime.codegen.tuple_removal import element_in, without_tuples
from firesteel.testing import test_environment

LOOP = """def make(f):
  def process(values, timestamps):
    for v0 in values:
            v1 = ((v0 + 1, v0 * 2))
{}
  return process
"""


def source_of(*lines: str) -> str:
    return LOOP.format("\n".join(f"            {line}" for line in lines))


def results(source: str, code: str | ast.Module) -> list[Any]:
    scope: dict[str, Any] = {}
    exec(compile(code, "<loop>", "exec"), scope)
    found: list[Any] = []
    scope["make"](found.append)([0, 1, 2, 3, 4, 5], None)
    return found


REMOVED = [
    ("f(v1[0])", "f(v1[1] - v1[0])"),
    ("k2 = v1[0]", "if k2 > 3:", "    f(v1)", "f(k2)"),
    ("try:", "    f(10 // v0 + v1[1])", "except ZeroDivisionError:", "    f(v1)", "    f([v1])"),
    ("for v2 in range(v1[0]):", "    f((v2, v1[1]))"),
    ("v2 = ((v1[1], v1[0], 3))", "f(v2[0] + v2[2])", "if v2[1] == 2:", "    f(v2)"),
    ("if v1[0] == 1:", "    pass", "elif v1[0] == 2:", "    f(v1)", "else:", "    f(v1[1])"),
]
KEPT = [
    ("f(v1)",),
    ("try:", "    f(v1)", "except TypeError:", "    pass"),
    ("if v0 > 3:", "    f(v1)", "    f(v1)"),
    ("if v0 > 3:", "    v1 = v1 + (0,)", "f(v1[0])"),
    ("f(v1[-1])",),
    ("f(v1[0:1])",),
    ("f(v1[True])",),
    ("if v1 == (1, 0):", "    f(1)"),
    ("if v0 > 3:", "    for v2 in range(2):", "        f(v1)"),
]


@pytest.mark.parametrize("lines", REMOVED)
def test_a_tuple_that_is_not_needed(lines: tuple[str, ...]) -> None:
    source = source_of(*lines)
    tree = without_tuples(source)
    assert isinstance(tree, ast.Module)
    assert "v1" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert results(source, tree) == results(source, source)


@pytest.mark.parametrize("lines", KEPT)
def test_a_tuple_that_is_needed(lines: tuple[str, ...]) -> None:
    source = source_of(*lines)
    assert without_tuples(source) == source


def test_a_tuple_that_is_used_behind_the_loop() -> None:
    source = source_of("f(v1[0])").replace("  return process", "    f(v1)\n  return process")
    assert without_tuples(source) == source


def test_lines_keep_their_numbers() -> None:
    source = source_of("f(v1[0])", "f(v1[1])")
    tree: Any = without_tuples(source)
    numbers = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert sorted(numbers) == [5, 6]


def test_an_element_that_was_not_created() -> None:
    assert element_in({"v1_0": 1, "v1_1": 2, "v2": 3}, "v1", None) == (1, 2)
    assert element_in({"v1": 4, "v1_0": 1}, "v1", None) == 4
    assert element_in({"v10_0": 4}, "v1", None) is None


def test_an_error_names_the_element() -> None:
    env = test_environment(1)
    pairs = env.from_collection([3, 2, 0, 1]).map(lambda number: (number, "text"))
    divided = pairs.filter(lambda pair: 6 // pair[0] > 0).map(lambda pair: pair[1])
    with pytest.raises(JobExecutionError) as caught:
        list(divided.execute_and_collect())
    assert caught.value.failure.error_type == "ZeroDivisionError"
    assert caught.value.failure.element == "(0, 'text')"
