"""The pattern of MATCH_RECOGNIZE and what comes after a match, as far as Flink has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from firesteel.table.binder.places import position_at
from firesteel.table.bound.errors import ValidationError
from firesteel.table.parser import pattern as parsed
from firesteel.table.plan.match.node import AfterMatch, AfterMatchKind, PatternTerm

__all__ = ["after_match", "bind_pattern"]

_UNSUPPORTED: dict[type[parsed.Pattern], str] = {
    parsed.Alternation: "Currently, CEP doesn't support branching patterns.",
    parsed.Permutation: "Currently, CEP doesn't support PERMUTE patterns.",
    parsed.Exclusion: "Currently, CEP doesn't support '{-' '-}' patterns.",
}


def bind_pattern(pattern: parsed.RowPattern, sql: str = "") -> tuple[PatternTerm, ...]:
    """The terms of a pattern in order. As in Flink, ``^`` and ``$`` mean nothing.

    >>> a, b = parsed.Variable("A"), parsed.Variable("B")
    >>> print(*bind_pattern(parsed.RowPattern(parsed.Concatenation((parsed.Quantified(a, 1, None), b)))))
    A+ B
    """
    terms: list[PatternTerm] = []
    for term, variable in _terms(pattern.pattern):
        if any(term.variable == known.variable for known in terms):
            error = ValidationError("Pattern variables must be unique. That might change in the future.")
            raise error.at(position_at(variable.offset, sql)) if sql else error
        if (term.least, term.most) in ((0, 1), (0, None)) and terms and _is_greedy(terms[-1]):
            raise ValidationError(
                f"Optional pattern cannot be preceded by greedy pattern: {terms[-1]} {term}.",
                hint=f"Write {terms[-1]}? for as few rows as possible.",
            )
        terms.append(term)
    if _is_greedy(terms[-1]):
        raise ValidationError(
            "Greedy quantifiers are not allowed as the last element of a Pattern yet. Finish your pattern with "
            "either a simple variable or reluctant quantifier."
        )
    if all(term.least == 0 for term in terms):
        raise ValidationError(
            "Patterns that can produce empty matches are not supported. There must be at least one non-optional state."
        )
    return tuple(terms)


def _is_greedy(term: PatternTerm) -> bool:
    """Whether a term takes as many rows as it can; one with a fixed number, or none or one, is not called greedy."""
    return not term.reluctant and term.least != term.most and (term.least, term.most) != (0, 1)


def _terms(pattern: parsed.Pattern) -> Iterator[tuple[PatternTerm, parsed.Variable]]:
    match pattern:
        case parsed.Variable():
            yield PatternTerm(pattern.name), pattern
        case parsed.Concatenation():
            for part in pattern.parts:
                yield from _terms(part)
        case parsed.Quantified():
            yield _quantified(pattern), _variable(pattern)
        case _:
            raise ValidationError(f"Expression not supported: {pattern}. {_UNSUPPORTED[type(pattern)]}")


def _variable(pattern: parsed.Quantified) -> parsed.Variable:
    if isinstance(pattern.part, parsed.Variable):
        return pattern.part
    if type(pattern.part) in _UNSUPPORTED:
        raise ValidationError(f"Expression not supported: {pattern.part}. {_UNSUPPORTED[type(pattern.part)]}")
    raise ValidationError(f"Expression not supported: {pattern.part}. Group patterns are not supported yet.")


def _quantified(pattern: parsed.Quantified) -> PatternTerm:
    variable = _variable(pattern)
    if pattern.most == 0:
        raise ValidationError(f"A quantifier needs at least one row, but {pattern} has none.")
    if pattern.reluctant and (pattern.least, pattern.most) == (0, 1):
        raise ValidationError("Reluctant optional variables are not supported yet.")
    return PatternTerm(variable.name, pattern.least, pattern.most, pattern.reluctant)


def after_match(node: exp.Expression | None, variables: Sequence[str]) -> AfterMatch:
    """The strategy after a match; without the clause, the search goes on with the next row."""
    if node is None:
        return AfterMatch(AfterMatchKind.NEXT_ROW)
    if isinstance(node, exp.Alias):
        variable = node.alias
        if variable not in variables:
            raise ValidationError(f"Unknown pattern '{variable}'.", hint=f"The variables are {', '.join(variables)}.")
        return AfterMatch(AfterMatchKind[node.this.name], variable)
    return AfterMatch(AfterMatchKind.NEXT_ROW if node.name == "NEXT ROW" else AfterMatchKind.PAST_LAST_ROW)
