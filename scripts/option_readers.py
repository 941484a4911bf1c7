"""Finds which parts of Firesteel read a configuration option, in the syntax trees of their modules.

A read passes the option itself to a function that is not a setter (``configuration.get(OPTION)``), or puts it into a
table (``{"block_size": OPTION}``). Names are resolved through imports, also those in functions, with aliases and
through other modules. ``OPTION.key`` and ``OPTION.default`` are no reads: these are in messages, and in settings that
are written. A key as text is a read if a value is looked up by it: ``settings.get("spark.master")``.

A public method of the API that reads an option only returns what the program has set. It does not count.
"""

from __future__ import annotations

import ast
import re
from collections import ChainMap, defaultdict
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from firesteel.config.options import OWNERS, declared_options

__all__ = ["Read", "find_reads", "option_names", "readers", "readers_in"]

ROOT = Path(__file__).resolve().parents[1]

API = ("common", "datastream")
"""Packages whose public functions only pass on what is configured."""
NOT_READERS = ("testing",)
"""Packages without an effect on jobs of users."""

SETTERS = {"set", "_set", "remove_config", "setdefault"}
LOOKUPS = {"get", "get_string", "get_integer", "get_boolean", "get_float", "get_bytearray", "contains_key"}

Bindings = MutableMapping[str, str]

_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"[\"']([\w.-]+)[\"']")


@dataclass(frozen=True, order=True)
class Read:
    """A place where an option is read."""

    option: str
    module: str
    line: int
    function: str
    """The name of the innermost function around it."""

    @property
    def package(self) -> str:
        """The package of the module, without those within it."""
        return self.module.split(".")[1]

    @property
    def has_effect(self) -> bool:
        """Whether the value is used, and not only returned to the program that has set it."""
        if self.package in API:
            return self.function.startswith("_") and not self.function.startswith("__")
        return self.package not in NOT_READERS


@cache
def option_names() -> dict[str, str]:
    """The keys of all options, the first of each its own, by their full names."""
    return {
        f"{owner.__name__}.{name}": option.key for owner in OWNERS for name, option in declared_options(owner).items()
    }


@cache
def readers() -> Mapping[str, list[str]]:
    """The packages in which an option takes effect, by its key."""
    modules = {name: path.read_text(encoding="utf-8") for name, path in _modules()}
    return readers_in(modules)


def readers_in(modules: Mapping[str, str]) -> dict[str, list[str]]:
    """The same for the texts of modules by name."""
    packages = defaultdict(set)
    keys = option_names()
    for read in find_reads(modules):
        if read.has_effect:
            packages[keys[read.option]].add(read.package)
    return {key: sorted(packages[key]) for key in keys.values()}


def find_reads(modules: Mapping[str, str]) -> list[Read]:
    """Every read in the texts of modules by name, except in those that declare options."""
    trees = _trees(modules)
    exported = {name: dict(_imported_names(tree.body)) for name, tree in trees.items()}
    return sorted(read for name, tree in trees.items() for read in _Visitor(name, tree, exported).reads)


def _trees(modules: Mapping[str, str]) -> dict[str, ast.Module]:
    """Parses the modules that mention an option, its key, or a module of options: all of them would take seconds."""
    declaring = {owner.__name__ for owner in OWNERS}
    left = {name: text for name, text in modules.items() if name not in declaring}
    trees: dict[str, ast.Module] = {}
    keys = set(option_names().values())
    names = {name.rpartition(".")[2] for name in (*option_names(), *declaring)}
    while names:
        parsed = {
            name: ast.parse(text)
            for name, text in left.items()
            if not names.isdisjoint(_WORD.findall(text)) or not keys.isdisjoint(_QUOTED.findall(text))
        }
        left = {name: text for name, text in left.items() if name not in parsed}
        trees |= parsed
        # what they import under another name, other modules may import from them
        bound = (pair for tree in parsed.values() for pair in _imported_names(tree.body))
        names = {alias for alias, name in bound if name.rpartition(".")[2] in names} - names
    return trees


def _modules() -> Iterator[tuple[str, Path]]:
    for path in sorted((ROOT / "firesteel").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if len(parts) > 2:
            yield ".".join(parts).removesuffix(".__init__"), path


def _imported_names(body: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    """What imports bind, in these statements and those within them, except in functions."""
    for statement in body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield alias.asname or alias.name.split(".")[0], alias.name if alias.asname else alias.name.split(".")[0]
        elif isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                yield alias.asname or alias.name, f"{statement.module}.{alias.name}"
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            within = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)]
            within += [s for child in getattr(statement, "handlers", ()) for s in child.body]
            yield from _imported_names(within)


class _Visitor(ast.NodeVisitor):
    """Collects the reads of one module."""

    def __init__(self, module: str, tree: ast.Module, exported: Mapping[str, Mapping[str, str]]):
        self.reads: set[Read] = set()
        self._module = module
        self._exported = exported
        self._options = option_names()
        self._named = {key: name for name, key in self._options.items()}
        self._scope: ChainMap[str, str] = ChainMap(dict(_imported_names(tree.body)))
        self._functions = [""]
        self.visit(tree)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A function has names of its own: parameters hide those of the module."""
        every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
        own: Bindings = {parameter.arg: "" for parameter in every if parameter is not None}
        own.update(_imported_names(node.body))
        for part in (*node.decorator_list, node.args):
            self.visit(part)
        self._scope = self._scope.new_child(own)
        self._functions.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._functions.pop()
        self._scope = self._scope.parents

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        if called not in SETTERS:
            self._add(values)
        if called in LOOKUPS and node.args:
            self._add_key(node.args[0])
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        self._add(node.values)
        self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple | ast.List | ast.Set) -> None:
        self._add(node.elts)
        self.generic_visit(node)

    visit_List = visit_Tuple  # noqa: N815
    visit_Set = visit_Tuple  # noqa: N815

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Load):
            self._add_key(node.slice)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if any(isinstance(operator, (ast.In, ast.NotIn)) for operator in node.ops):
            self._add_key(node.left)
        self.generic_visit(node)

    def _add(self, values: Iterable[ast.expr]) -> None:
        for value in values:
            name = self._resolve(value)
            if name in self._options:
                self._record(name, value)

    def _add_key(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and node.value in self._named:
            self._record(self._named[node.value], node)

    def _record(self, option: str, node: ast.expr) -> None:
        self.reads.add(Read(option, self._module, node.lineno, self._functions[-1]))

    def _resolve(self, node: ast.expr) -> str:
        """The full name of what an expression refers to; nothing if it is not a name."""
        if isinstance(node, ast.Attribute):
            owner = self._resolve(node.value)
            return self._follow(f"{owner}.{node.attr}") if owner else ""
        return self._follow(self._scope.get(node.id, "")) if isinstance(node, ast.Name) else ""

    def _follow(self, name: str) -> str:
        """Where a name comes from that a module has imported itself."""
        seen = set()
        while name not in self._options and name not in seen:
            seen.add(name)
            module, _, attribute = name.rpartition(".")
            name = self._exported.get(module, {}).get(attribute, name)
        return name
