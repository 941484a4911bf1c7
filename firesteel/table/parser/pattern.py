"""The pattern of MATCH_RECOGNIZE as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = [
    "Alternation",
    "Concatenation",
    "Exclusion",
    "Pattern",
    "Permutation",
    "Quantified",
    "RowPattern",
    "Variable",
    "variables_of",
]


@dataclass(frozen=True)
class Pattern:
    """A part of a pattern."""

    def children(self) -> tuple[Pattern, ...]:
        """The parts of this part."""
        return ()


@dataclass(frozen=True)
class Variable(Pattern):
    """A row that fulfils the condition of a variable."""

    name: str
    offset: int = 0

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Concatenation(Pattern):
    """Parts that follow each other."""

    parts: tuple[Pattern, ...]

    def children(self) -> tuple[Pattern, ...]:
        """The parts in order."""
        return self.parts

    def __str__(self) -> str:
        return f"({' '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Alternation(Pattern):
    """One of several parts."""

    parts: tuple[Pattern, ...]

    def children(self) -> tuple[Pattern, ...]:
        """The alternatives."""
        return self.parts

    def __str__(self) -> str:
        return f"({' | '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Permutation(Pattern):
    """Parts in any order."""

    parts: tuple[Pattern, ...]

    def children(self) -> tuple[Pattern, ...]:
        """The parts."""
        return self.parts

    def __str__(self) -> str:
        return f"PERMUTE({', '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Exclusion(Pattern):
    """A part whose rows are matched and not emitted."""

    part: Pattern

    def children(self) -> tuple[Pattern, ...]:
        """The excluded part."""
        return (self.part,)

    def __str__(self) -> str:
        return f"{{- {self.part} -}}"


@dataclass(frozen=True)
class Quantified(Pattern):
    """A part a number of times; ``most`` is ``None`` for any number."""

    part: Pattern
    least: int
    most: int | None
    reluctant: bool = False

    def children(self) -> tuple[Pattern, ...]:
        """The repeated part."""
        return (self.part,)

    def __str__(self) -> str:
        most = "" if self.most is None else self.most
        return f"{self.part}{{{self.least},{most}}}{'?' if self.reluctant else ''}"


@dataclass(frozen=True)
class RowPattern:
    """A pattern, and whether it is bound to the first and the last row of a partition."""

    pattern: Pattern
    from_start: bool = False
    to_end: bool = False

    def __str__(self) -> str:
        return f"{'^ ' if self.from_start else ''}{self.pattern}{' $' if self.to_end else ''}"


def variables_of(pattern: Pattern) -> Iterator[Variable]:
    """The variables of a pattern, in the order of the text, each as often as it occurs."""
    if isinstance(pattern, Variable):
        yield pattern
    for child in pattern.children():
        yield from variables_of(child)
