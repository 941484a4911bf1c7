"""Complex event processing: patterns of events in a stream, as Flink's CEP library has them."""

from firesteel.cep.functions import (
    PatternFlatSelectFunction,
    PatternFlatTimeoutFunction,
    PatternProcessFunction,
    PatternSelectFunction,
    PatternTimeoutFunction,
    RichPatternFlatSelectFunction,
    RichPatternSelectFunction,
    TimedOutPartialMatchHandler,
)
from firesteel.cep.pattern.after_match import AfterMatchSkipStrategy
from firesteel.cep.pattern.conditions import IterativeCondition, RichIterativeCondition, SimpleCondition
from firesteel.cep.pattern.pattern import GroupPattern, Pattern
from firesteel.cep.pattern.quantifier import MalformedPatternException, WithinType
from firesteel.cep.pattern_stream import CEP, PatternStream

__all__ = [
    "CEP",
    "AfterMatchSkipStrategy",
    "GroupPattern",
    "IterativeCondition",
    "MalformedPatternException",
    "Pattern",
    "PatternFlatSelectFunction",
    "PatternFlatTimeoutFunction",
    "PatternProcessFunction",
    "PatternSelectFunction",
    "PatternStream",
    "PatternTimeoutFunction",
    "RichIterativeCondition",
    "RichPatternFlatSelectFunction",
    "RichPatternSelectFunction",
    "SimpleCondition",
    "TimedOutPartialMatchHandler",
    "WithinType",
]
