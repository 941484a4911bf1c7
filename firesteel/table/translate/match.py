"""Streams of MATCH_RECOGNIZE."""

from __future__ import annotations

from firesteel.table.plan.match.node import Match
from firesteel.table.runtime.operators.match.spec import MatchSpec
from firesteel.table.translate.basic import rowtime_of
from firesteel.table.translate.translator import Columns, Translator, translates

__all__: list[str] = []


@translates(Match)
def match(node: Match, translator: Translator) -> Columns:
    """Matches of a pattern per key."""
    spec = MatchSpec(
        node.input.row_type,
        node.row_type,
        node.partition,
        node.order,
        node.pattern,
        node.definitions,
        tuple(measure.expression for measure in node.measures),
        node.after,
        node.within_ms,
        node.is_by_rowtime,
        rowtime_of(node.row_type),
        translator.session,
        node.is_bounded,
    )
    keyed = translator.keyed(translator.translate(node.input), node.partition)
    return translator.apply(keyed, "Match", spec, is_single=not node.partition, state_of=node)
