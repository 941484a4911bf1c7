"""Streams of what is checked before sinks."""

from __future__ import annotations

from firesteel.table.plan.constraints import ConstraintEnforcer
from firesteel.table.runtime.operators.constraints import ConstraintEnforcerSpec
from firesteel.table.translate.translator import Columns, Translator, translates

__all__ = ["not_null"]


@translates(ConstraintEnforcer)
def not_null(node: ConstraintEnforcer, translator: Translator) -> Columns:
    """Rows without nulls in NOT NULL columns."""
    names = node.row_type.field_names
    spec = ConstraintEnforcerSpec(tuple((index, names[index]) for index in node.columns), node.drops)
    return translator.apply(translator.translate(node.input), "ConstraintEnforcer", spec)
