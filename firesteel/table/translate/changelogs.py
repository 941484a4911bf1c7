"""Streams of changes as rows, and of rows as changes."""

from __future__ import annotations

from firesteel.table.plan.changelogs import FromChangelog, ToChangelog
from firesteel.table.runtime.operators.changelogs import FromChangelogSpec, ToChangelogSpec
from firesteel.table.translate.translator import Columns, Translator, translates

__all__ = ["from_changelog", "to_changelog"]


@translates(ToChangelog)
def to_changelog(node: ToChangelog, translator: Translator) -> Columns:
    """TO_CHANGELOG."""
    spec = ToChangelogSpec(node.column, node.codes)
    return translator.apply(translator.translate(node.input), "ToChangelog", spec)


@translates(FromChangelog)
def from_changelog(node: FromChangelog, translator: Translator) -> Columns:
    """FROM_CHANGELOG."""
    spec = FromChangelogSpec(node.column, node.codes)
    return translator.apply(translator.translate(node.input), "FromChangelog", spec)
