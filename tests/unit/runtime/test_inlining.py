"""Putting simple functions into the generated loop: the same meaning, or not at all."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.runtime.codegen import bytecode
from firesteel.runtime.codegen.inlining import (
    find_inline_expressions,
    inline_expression,
    inline_expression_of_two,
    register_inline_expressions,
)
from firesteel.runtime.codegen.loops import LOOPS, LoopWriter

_modules = itertools.count()
Load = Callable[[str], Any]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Imports a module with the given text."""

    def load(text: str) -> Any:
        path = tmp_path / f"user_{next(_modules)}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def is_inlined(function: Any) -> bool:
    return bool(find_inline_expressions([function]))


def loop_of(function: Any) -> Callable[[Any], Any]:
    """The function as a generated loop has it."""
    found = find_inline_expressions([function])
    assert found, "not inlined"
    register_inline_expressions(found)
    results: list[Any] = []
    writer = LoopWriter(False, False)
    writer.line(f"{writer.bind('keep', results.append)}({writer.call(function, 'v0')})")
    loop = writer.compile("test")

    def evaluate(value: Any) -> Any:
        loop([value], None)
        return results.pop()

    return evaluate


def evaluate(function: Any, value: Any) -> Any:
    return loop_of(function)(value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("lambda x: x % 3 != 0", [0, 1, 7]),
        ("lambda x: x[0]", ["abc", (1, 2)]),
        ("lambda x: (x, 1)", [None, 3]),
        ("lambda pair: {'a': pair, 'b': [pair, pair]}", [1]),
        ("lambda x: x if x > 2 else -x", [1, 5]),
        ("lambda x: x and not x or x", [0, 1]),
        ("lambda x: 0 < x < 10", [0, 5, 10]),
        ("lambda x: len(str(x)) + max(x, 3)", [1, 12345]),
        ("lambda x: x.upper().split('-')", ["a-b"]),
        ("lambda x: dict(x=x, key=x)", [1]),
        ("lambda len: len + 1", [1]),
        ("lambda x: f'{x!r:>5}|{x}'", ["a"]),
        ("lambda x: f'{x}\\n{x}'", ["a"]),
        ("lambda x: 'a\\n' + x", ["b"]),
        ("lambda x: x[1:3:2]", ["abcdef"]),
        ("lambda x: x ** -2 // 0.1", [3]),
        ("lambda x: 5", ["unused"]),
        ("lambda _: None", ["unused"]),
        ("lambda x: x == b'\\x00' or x is Ellipsis", [b"\x00", 1]),
        ("lambda x: print", [1]),
    ],
)
def test_an_inlined_lambda_gives_what_the_lambda_gives(load: Load, text: str, values: list[Any]) -> None:
    function = load(f"function = {text}\n").function
    for value in values:
        assert evaluate(function, value) == function(value)


def test_a_one_line_function_is_inlined_as_well(load: Load) -> None:
    module = load("def double(number):\n    return number * 2\n\n\ndef nothing(x):\n    return\n")
    assert evaluate(module.double, 21) == 42
    assert not is_inlined(module.nothing)


def test_names_of_the_module_are_looked_up_each_time(load: Load) -> None:
    module = load("factor = 3\nlen = lambda x: 5\nfunction = lambda x: int(x) * factor + len(x)\n")
    loop = loop_of(module.function)
    assert loop(2.5) == module.function(2.5) == 11
    module.factor = 100
    assert loop(2.5) == module.function(2.5) == 205


def test_names_of_a_closure_are_looked_up_each_time(load: Load) -> None:
    module = load(
        "def make(n):\n    def change(to):\n        nonlocal n\n        n = to\n    return (lambda x: x + n), change\n"
    )
    (one, change), (other, _) = module.make(1), module.make(1000)
    loop, other_loop = loop_of(one), loop_of(other)
    assert (loop(5), other_loop(5)) == (6, 1005), "the same code, but each its own closure"
    change(50)
    assert loop(5) == one(5) == 55
    assert other_loop(5) == 1005


def test_names_of_the_generated_loop_do_not_hide_the_users(load: Load) -> None:
    module = load("v0 = 7\nv1 = 8\nn = 9\nvalues = 10\nt = 11\nfunction = lambda x: (x, v0, v1, n, values, t)\n")
    assert evaluate(module.function, 1) == module.function(1) == (1, 7, 8, 9, 10, 11)


arithmetic = st.recursive(
    st.sampled_from(["x", "1", "-2", "0.5", "10"]),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "<", "==", "and", "or"]), inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("not {}".format, inner).map("({})".format),
        st.builds("abs({})".format, inner),
        st.builds("({}, {})[0]".format, inner, inner),
    ),
    max_leaves=8,
)


@given(st.lists(arithmetic, min_size=1, max_size=5), st.integers(-20, 20))
def test_random_expressions_keep_their_meaning(texts: list[str], value: int) -> None:
    """All on one line: each must be told from the others by its bytecode."""
    line = "functions = [" + ", ".join(f"lambda x: {text}" for text in texts) + "]\n"
    name = f"<test {next(_modules)}>"
    linecache.cache[name] = (len(line), None, [line], name)
    scope: dict[str, Any] = {}
    exec(compile(line, name, "exec"), scope)
    for function in scope["functions"]:
        assert evaluate(function, value) == function(value)


def test_two_lambdas_on_one_line_are_told_apart(load: Load) -> None:
    module = load("pair = (lambda x: x + 1), (lambda x: x + 2)\n")
    assert [evaluate(function, 10) for function in module.pair] == [11, 12]
    same = load("a, b = (lambda x: x + 1.0), (lambda x: x + 1)\n")
    assert [repr(evaluate(f, 1)) for f in (same.a, same.b)] == ["2.0", "2"]


def test_constants_of_equal_value_but_other_type_are_told_apart(load: Load) -> None:
    module = load("a, b, c = (lambda x: 1), (lambda x: True), (lambda x: 1.0)\n")
    assert [repr(evaluate(f, 0)) for f in (module.a, module.b, module.c)] == ["1", "True", "1.0"]


EXPRESSIONS = """
x % 3 != 0; x[0]; (x, 1); {'a': x, 'b': [x, x]}; {x: x}; {'a': 1, 'b': 2}; x if x > 2 else -x; x and not x or x
0 < x < 10; len(str(x)) + max(x, 3); x.upper().split('-'); dict(x=x, key=x); f'{x!r:>5}|{x}'; f'{x!s}{x!a}{x:>{x}}'
x[1:3:2]; x[1:]; x[x:x]; x ** -2 // 0.1; 5; None; True; x == b'a' or x is Ellipsis; x is not None; x in (1, 2)
x not in [1, 2]; [1, 2, 3]; (); {}; +x; ~x; -x; not x; x @ x; x << 1 | x & 3 ^ x >> 2; x - 1; x / 2; print(x, sep='')
x.f(1, a=2); x.a.b[x.c]; n + x; n(x); n.a(x); 1 if x else 2; x if x is None else 3; (x and x) if x else (x or x)
x < 1 and x > 2 or x == 3; 1 if 0 < x < 2 else 3; 1 < x <= 2 < x; (x, x, n); x['a'] * x.get('b', 2); f(n=n)(x)
-1 if x < 0 else 1 if x > 0 else 0; int(x) if x.isdigit() else float(x); x[1, 2:3]; {**x, 'a': 1}; 1e999 * x; x * 1j
"""


@pytest.mark.parametrize("text", [text.strip() for text in EXPRESSIONS.replace("\n", ";").split(";") if text.strip()])
@pytest.mark.parametrize("shape", ["lambda", "def", "closure"])
def test_every_kind_of_expression_is_known_in_this_version_of_python(load: Load, text: str, shape: str) -> None:
    """Each version compiles them to instructions of its own; one that nobody has looked at is not inlined."""
    if shape == "lambda":
        source = f"n = f = None\nfunction = lambda x: {text}\n"
    elif shape == "def":
        source = f"n = f = None\ndef function(x):\n    return {text}\n"
    else:
        source = f"def make(n, f):\n    return lambda x: {text}\nfunction = make(None, None)\n"
    assert is_inlined(load(source).function)


def test_an_instruction_that_is_not_known_keeps_a_function_out(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("function = lambda x: x + 1\n")
    assert is_inlined(module.function)
    version = sys.version_info[:2]
    monkeypatch.setitem(bytecode._KNOWN, version, bytecode._KNOWN[version] - {"RETURN_VALUE"})
    assert not is_inlined(module.function)
    monkeypatch.delitem(bytecode._KNOWN, version)
    assert not is_inlined(module.function), "a version of Python that is not known"


def test_every_supported_version_of_python_is_known() -> None:
    project = (Path(bytecode.__file__).parents[3] / "pyproject.toml").read_text()
    supported = re.findall(r"Programming Language :: Python :: 3\.(\d+)", project)
    assert {(3, int(minor)) for minor in supported} == set(bytecode._KNOWN)


@pytest.mark.parametrize(
    "texts",
    [
        ("1", "True", "1.0"),
        ("(1, 2)", "(True, 2)", "(1.0, 2)"),
        ("x + 1", "x + True", "x + 1.0"),
        ("0.0", "-0.0", "0"),
        ("x in (0, 1)", "x in (0, True)"),
        ("[0, 1, 2]", "[False, 1, 2]"),
        ("x[0]", "x[False]"),
        ("dict(a=x)", "dict(b=x)"),
        ("'a'", "b'a'"),
        ("f'{x!r}'", "f'{x!s}'", "f'{x}'"),
        ("x < 1", "x <= 1", "x > 1"),
        ("x or 1", "x and 1"),
        ("x.real", "x.imag"),
    ],
)
def test_expressions_that_differ_a_little_are_told_apart_on_one_line(load: Load, texts: tuple[str, ...]) -> None:
    for order in itertools.permutations(texts):
        functions = load(f"functions = [{', '.join(f'lambda x: {text}' for text in order)}]\n").functions
        for value in (0, 1, (5, 6)):
            for function in functions:
                assert outcome(loop_of(function), value) == outcome(function, value)


def outcome(function: Callable[[Any], Any], value: Any) -> tuple[type, str]:
    """What a function gives, with its type, or the error it raises."""
    try:
        given = function(value)
    except Exception as error:
        return type(error), str(error)
    return type(given), repr(given)


@pytest.mark.parametrize(
    "text",
    [
        "function = lambda x, n=2: x + n",
        "function = lambda x, *rest: x",
        "function = lambda *, x: x",
        "function = lambda x, **more: x",
        "function = lambda x, y, z: x",
        "function = lambda: 1",
        "function = lambda x, /: x",
        "function = lambda x: (y := x) + y",
        "function = lambda x: [i for i in x]",
        "function = lambda x: sum(i for i in x)",
        "function = lambda x: {i: i for i in x}",
        "function = lambda x: (lambda y: y)(x)",
        "function = lambda x: (yield x)",
        "function = lambda x: (*x, 1)",
        "function = lambda x: unknown_name(x)",
        "def function(x):\n    y = x\n    return y",
        "def function(x):\n    '''Doc.'''\n    return x\n",
        "async def function(x):\n    return x",
        "class C:\n    function = lambda x: x.__hidden\nfunction = C.function",
        "class C:\n    def method(self, x):\n        return x\nfunction = C().method",
        "class C:\n    def __call__(self, x):\n        return x\nfunction = C()",
        "import functools\nfunction = functools.partial(pow, 2)",
        "function = str.upper",
        "function = eval('lambda x: x + 1')",
        "RULE = 'x + 1'\nfunction = lambda x: eval(RULE)",
        "function = lambda x: exec('x')",
        "function = lambda x: '{x}'.format(**locals())",
        "function = lambda x: vars()['x']",
        "function = lambda x: dir()",
        "function = lambda x: globals()['x']",
        "function = lambda x: __import__('math')",
        "function = lambda x: list(map(eval, x))",
        "evaluate = eval\nfunction = lambda x: evaluate('x + 1')",
        "def make(known):\n    return lambda x: known()['x']\nfunction = make(locals)",
        "import builtins\nfunction = lambda x: builtins.eval('x + 1')",
        "import sys\nfunction = lambda x: sys._getframe().f_locals['x']",
        "from sys import _getframe as frame\nfunction = lambda x: frame().f_locals['x']",
        "import inspect\nfunction = lambda x: inspect.currentframe().f_locals",
        "limit = 3\nfunction = lambda frame: frame.query('a > @limit')",
        "import types\nnumexpr = types.SimpleNamespace()\nfunction = lambda x: numexpr.evaluate('x * 2')",
        "import types\nduckdb = types.SimpleNamespace()\nfunction = lambda x: duckdb.sql('SELECT sum(a) FROM x')",
        "class C:\n    def make(self):\n        return lambda x: super()\nfunction = C().make()",
    ],
)  # fmt: skip
def test_what_could_change_its_meaning_is_only_called(load: Load, text: str) -> None:
    assert find_inline_expressions([load(text + "\n").function]) == {}


@pytest.mark.parametrize(
    "text",
    [
        "function = lambda a, b: (a[0], a[1] + b[1])",
        "def function(one, other):\n    return one[0], one[1] + other[1]",
        "function = lambda b, a: (b[0], max(b[1], a[1]))",
        "first = 0\nfunction = lambda a, b: (a[first], a[1] + b[1])",
    ],
)
def test_a_function_of_two_arguments_is_put_into_a_loop_that_calls_it_with_two(load: Load, text: str) -> None:
    function = load(text + "\n").function
    register_inline_expressions(find_inline_expressions([function]))
    assert inline_expression(function) is None
    assert inline_expression_of_two(function) is not None
    writer = LoopWriter(with_timestamps=False, checked=False)
    found: list[Any] = []
    writer.line("v1 = ('other', 5)")
    writer.line(f"{writer.bind('keep', found.append)}({writer.call_with_two(function, 'v0', 'v1')})")
    writer.compile("test")([("a", 1), ("b", 2)], None)
    assert found == [function(("a", 1), ("other", 5)), function(("b", 2), ("other", 5))]


def test_a_file_that_changed_since_it_was_loaded_is_not_believed(load: Load) -> None:
    module = load("function = lambda x: x + 1\n")
    path = Path(module.__file__)
    path.write_text("function = lambda x: x + 2\n")
    linecache.checkcache(str(path))
    assert not is_inlined(module.function)
    path.write_text("this is not Python at all ((\n")
    linecache.checkcache(str(path))
    assert not is_inlined(module.function)
    path.unlink()
    linecache.checkcache(str(path))
    assert not is_inlined(module.function)


def test_a_decorated_function_is_not_taken_for_its_inner_one(load: Load) -> None:
    module = load(
        "def twice(f):\n    def wrapper(x):\n        return f(f(x))\n    return wrapper\n"
        "@twice\ndef function(x):\n    return x + 1\n"
    )
    assert evaluate(module.function, 1) == module.function(1) == 3


def test_only_registered_functions_are_inlined(load: Load) -> None:
    module = load("a = lambda x: x + 1\nb = lambda x: x + 12345\n")
    register_inline_expressions(find_inline_expressions([module.a]))
    assert inline_expression(module.a) is not None
    assert inline_expression(module.b) is None
    assert inline_expression(len) is None
    assert inline_expression(module) is None


def test_the_table_tells_where_the_function_is(load: Load) -> None:
    module = load("\n\nfunction = lambda x: (\n    x + 1\n)\n")
    (found,) = find_inline_expressions([module.function]).values()
    assert (found.file, found.line) == (module.__file__, 4)


@pytest.mark.parametrize("text", ["lambda x: f'{x}\\n'", "lambda x: 'a\\n' + x", 'lambda x: f"""{x}\n"""'])
def test_an_inlined_body_stays_on_one_line(load: Load, text: str) -> None:
    """Lines of the loop are what errors are explained by."""
    function = load(f"function = {text}\n").function
    register_inline_expressions(find_inline_expressions([function]))
    writer = LoopWriter(False, False)
    writer.line(f"r = {writer.call(function, 'v0')}", element="v0", what="first")
    writer.line("1 / 0", element="v0", what="second")
    loop = writer.compile("test")
    with pytest.raises(ZeroDivisionError) as caught:
        loop(["a"], None)
    frame = caught.traceback[-1]
    assert LOOPS[loop.__code__.co_filename].lines[frame.lineno + 1].what == "second"
