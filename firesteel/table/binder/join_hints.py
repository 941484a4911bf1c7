"""Hints after SELECT: STATE_TTL and LOOKUP of its tables, and the UID of its operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from firesteel.config.option_values import to_duration
from firesteel.table.binder.places import position_at
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.lookups import DEFAULT_LOOKUP, LookupOptions
from firesteel.table.parser.hints import Hint

__all__ = ["NO_HINTS", "JoinHints", "check_names", "uid_of"]

_WITHOUT_EFFECT = ("BROADCAST", "EARLY_FIRE", "MULTI_JOIN", "NEST_LOOP", "SHUFFLE_HASH", "SHUFFLE_MERGE")
_NAMES = ("LOOKUP", "STATE_TTL", "UID", *_WITHOUT_EFFECT)


def check_names(hints: Sequence[Hint], sql: str) -> None:
    """Raises an error for a hint that does not exist."""
    for hint in hints:
        if hint.name not in _NAMES:
            raise ValidationError(
                f"There is no hint '{hint.name}'.",
                position=position_at(hint.offset, sql) if sql else None,
                hint=f"Hints after SELECT are {', '.join(_NAMES)}; OPTIONS follows the name of a table.",
            )


@dataclass(frozen=True)
class JoinHints:
    """What hints say of the tables of a FROM clause, by their names or aliases."""

    state_ttl_ms: dict[str, int] = field(default_factory=dict)
    """How long a join keeps rows of a table, or an aggregation groups of one."""
    lookups: dict[str, LookupOptions] = field(default_factory=dict)

    @staticmethod
    def of(hints: Sequence[Hint]) -> JoinHints:
        """The hints of a SELECT; others than these two are about something else."""
        found = JoinHints()
        for hint in hints:
            options = hint.option_map()
            if hint.name == "STATE_TTL":
                for table, text in options.items():
                    try:
                        found.state_ttl_ms.setdefault(table, to_duration(text).to_millis())
                    except ValueError as error:
                        raise ValidationError(f"Invalid STATE_TTL hint: '{text}' is not a duration.") from error
            elif hint.name == "LOOKUP":
                if "table" not in options:
                    raise ValidationError("Invalid LOOKUP hint: incomplete required option(s): 'table'.")
                found.lookups.setdefault(options["table"], LookupOptions.of_hint(options))
        return found

    def check(self, names: Iterable[str]) -> None:
        """Raises an error for a table that is not in the FROM clause."""
        known = set(names)
        for hint, tables in (("STATE_TTL", self.state_ttl_ms), ("LOOKUP", self.lookups)):
            unknown = [table for table in tables if table not in known]
            if unknown:
                raise ValidationError(
                    "The options of following hints cannot match the name of input tables or views: "
                    f"'{', '.join(unknown)}' in '{hint}'.",
                    hint=f"The tables are {', '.join(sorted(known))}.",
                )

    def lookup(self, table: str | None) -> LookupOptions:
        """How a table is looked up."""
        return DEFAULT_LOOKUP if table is None else self.lookups.get(table, DEFAULT_LOOKUP)

    def ttl_ms(self, table: str | None) -> int | None:
        """How long rows of a table are kept; None if no hint says so."""
        return None if table is None else self.state_ttl_ms.get(table)


NO_HINTS = JoinHints()


def uid_of(hints: Sequence[Hint]) -> str | None:
    """The name that a UID hint gives the operators of a query, for savepoints."""
    found = [hint for hint in hints if hint.name == "UID"]
    if not found:
        return None
    arguments = [argument for hint in found for argument in hint.arguments]
    if len(found) > 1 or len(arguments) != 1 or found[0].options or not arguments[0]:
        raise ValidationError("Invalid UID hint: it has one name, as in UID('orders').")
    return arguments[0]
