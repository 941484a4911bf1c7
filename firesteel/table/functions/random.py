"""Random numbers and identifiers."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable

from firesteel.table.bound.nodes import Call, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, PerCall
from firesteel.table.functions.signatures import INTEGER, signature
from firesteel.types import logical as t

__all__ = ["FUNCTIONS"]


def _generator(call: Call, index: int) -> random.Random:
    """A generator of its own for each call, with the seed if that is a constant."""
    seed = call.arguments[index] if index < len(call.arguments) else None
    return random.Random(seed.value if isinstance(seed, Literal) else None)


def _rand(call: Call, session: Session) -> Callable[..., float]:
    generator = _generator(call, 0)
    return lambda *_: generator.random()


def _rand_integer(call: Call, session: Session) -> Callable[..., int]:
    generator = _generator(call, 0 if len(call.arguments) == 2 else 1)
    return lambda *arguments: generator.randrange(arguments[-1])


FUNCTIONS = (
    FunctionDefinition(
        "RAND",
        signature("RAND", INTEGER, returns=t.DoubleType(), optional=1),
        row=PerCall(_rand),
        is_deterministic=False,
        returns_null=False,
        family="arithmetic",
    ),
    FunctionDefinition(
        "RAND_INTEGER",
        signature("RAND_INTEGER", INTEGER, INTEGER, returns=t.IntType(), optional=1),
        row=PerCall(_rand_integer),
        is_deterministic=False,
        returns_null=False,
        family="arithmetic",
    ),
    FunctionDefinition(
        "UUID",
        signature("UUID", returns=t.CharType(36), nullable=False),
        row=lambda: str(uuid.uuid4()),
        is_deterministic=False,
        returns_null=False,
        family="arithmetic",
    ),
)
