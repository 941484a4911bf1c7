"""Three-valued logic. AND and OR are evaluated from left to right, as far as needed, by the evaluators themselves."""

from __future__ import annotations

import pyarrow.compute as pc

from firesteel.table.functions.definition import FunctionDefinition
from firesteel.table.functions.signatures import BOOLEAN, signature
from firesteel.types import logical as t

__all__ = ["FUNCTIONS"]


def _test(name: str, row: str, spark: str, value: bool, negated: bool) -> FunctionDefinition:
    def vector(operand: object) -> object:
        found = pc.fill_null(operand if value else pc.invert(operand), False)
        return pc.invert(found) if negated else found

    return FunctionDefinition(
        name,
        signature(name.replace("_", " "), BOOLEAN, returns=t.BooleanType(), nullable=False),
        row=row,
        vector=vector,
        spark=spark,
        strict=False,
        returns_null=False,
        family="logical",
    )


FUNCTIONS = (
    FunctionDefinition(
        "AND",
        signature("AND", BOOLEAN, BOOLEAN, returns=t.BooleanType()),
        vector=pc.and_kleene,
        spark="({0} AND {1})",
        strict=False,
        family="logical",
    ),
    FunctionDefinition(
        "OR",
        signature("OR", BOOLEAN, BOOLEAN, returns=t.BooleanType()),
        vector=pc.or_kleene,
        spark="({0} OR {1})",
        strict=False,
        family="logical",
    ),
    FunctionDefinition(
        "NOT",
        signature("NOT", BOOLEAN, returns=t.BooleanType()),
        row="(not {0})",
        vector=pc.invert,
        spark="(NOT {0})",
        returns_null=False,
        family="logical",
    ),
    _test("IS_TRUE", "({0} is True)", "({0} IS TRUE)", value=True, negated=False),
    _test("IS_NOT_TRUE", "({0} is not True)", "({0} IS NOT TRUE)", value=True, negated=True),
    _test("IS_FALSE", "({0} is False)", "({0} IS FALSE)", value=False, negated=False),
    _test("IS_NOT_FALSE", "({0} is not False)", "({0} IS NOT FALSE)", value=False, negated=True),
)
