"""Draws the plan that EXPLAIN prints as a tree."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["draw_plan", "section_of"]

_SECTION = re.compile(r"^== (.*) ==$", re.MULTILINE)
_BRANCH = re.compile(r"^((?:   |:  )*)([:+]- )?(.*)$")
_NODE = re.compile(r"^(\w+)\((.*)\)(.*)$", re.DOTALL)
_MIN_WIDTH = 40


@dataclass
class _Node:
    text: str
    inputs: list[_Node] = field(default_factory=list)


def section_of(explained: str) -> tuple[str, str] | None:
    """The title and the text of the last part of EXPLAIN that is a tree of operators; None if there is none."""
    parts = _SECTION.split(explained)
    sections = list(zip(parts[1::2], parts[2::2], strict=True))
    trees = [(title, text.strip("\n")) for title, text in sections if title.endswith("Execution Plan") and text.strip()]
    trees = [(title, text) for title, text in trees if not text.lstrip().startswith("{")]
    return trees[-1] if trees else None


def draw_plan(tree: str, width: int) -> str:
    """The tree with lines between its operators, and what each does below its name.

    >>> print(draw_plan("Calc(select=[a])\\n+- TableScan(table=[t])", 60))
    Calc
    │   select: a
    └── TableScan
            table: t
    """
    roots = _parsed(tree)
    return "\n\n".join("\n".join(_drawn(root, "", "", width)) for root in roots)


def _parsed(tree: str) -> list[_Node]:
    roots: list[_Node] = []
    stack: list[_Node] = []
    for line in tree.split("\n"):
        if not line.strip():
            continue
        match = _BRANCH.match(line)
        assert match is not None
        prefix, branch, text = match.groups()
        depth = len(prefix) // 3 + (1 if branch else 0)
        if (not branch and prefix) or depth > len(stack):
            stack[-1].text += f"\n{line.lstrip(': ')}"  # the plan of a subquery
            continue
        node = _Node(text)
        del stack[depth:]
        (stack[-1].inputs if stack else roots).append(node)
        stack.append(node)
    return roots


def _drawn(node: _Node, first: str, rest: str, width: int) -> Iterator[str]:
    name, details = _details(node.text)
    yield first + name
    below = rest + ("│   " if node.inputs else "    ")
    room = max(_MIN_WIDTH, width - len(below) - 1)
    for key, value in details:
        wrapped = textwrap.wrap(value, max(20, room - len(key) - 2), break_on_hyphens=False) or [""]
        for number, line in enumerate(wrapped):
            label = f"{key}: " if not number else " " * (len(key) + 2)
            yield f"{below}{label if key else ''}{line}"
    for index, each in enumerate(node.inputs):
        is_last = index == len(node.inputs) - 1
        yield from _drawn(each, rest + ("└── " if is_last else "├── "), rest + ("    " if is_last else "│   "), width)


def _details(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The name of an operator, and its arguments."""
    match = _NODE.match(text)
    if match is None:
        return text, []
    name, inside, behind = match.groups()
    details = []
    for argument in _arguments(inside):
        key, _, value = argument.partition("=")
        is_named = bool(value) and re.fullmatch(r"\w+", key) is not None
        value = value if is_named else argument
        value = value[1:-1] if value.startswith("[") and value.endswith("]") else value
        details.append((key if is_named else "", value))
    return f"{name}{behind}", details


def _arguments(text: str) -> Iterator[str]:
    """Splits at commas that are in no bracket and no string."""
    depth, start, in_string = 0, 0, False
    for index, character in enumerate(text):
        if character == "'":
            in_string = not in_string
        elif in_string:
            continue
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[start:index].strip()
            start = index + 1
    if text[start:].strip():
        yield text[start:].strip()
