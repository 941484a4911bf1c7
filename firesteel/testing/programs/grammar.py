"""Generates whole programs from a seed."""

from __future__ import annotations

import random

from firesteel.testing.programs.nodes.async_waits import AsyncWait
from firesteel.testing.programs.nodes.broadcasts import Broadcast
from firesteel.testing.programs.nodes.bundles import Bundle
from firesteel.testing.programs.nodes.connects import CoMap, CoProcess
from firesteel.testing.programs.nodes.joins import IntervalJoin, LateIntervalJoin
from firesteel.testing.programs.nodes.operator_state import HoldBack
from firesteel.testing.programs.nodes.patterns import Match
from firesteel.testing.programs.nodes.processes import KeyedProcess, Process
from firesteel.testing.programs.nodes.reductions import Reduce
from firesteel.testing.programs.nodes.sinks import Sink
from firesteel.testing.programs.nodes.sources import Source
from firesteel.testing.programs.nodes.stateless import Filter, FlatMap, Map, Repartition, Union
from firesteel.testing.programs.nodes.timestamps import AssignTimestamps
from firesteel.testing.programs.nodes.window_joins import WindowCoGroup, WindowJoin
from firesteel.testing.programs.nodes.windows import Window
from firesteel.testing.programs.program import Node, Program, Ref, Sketch
from firesteel.testing.programs.sql.query import Query

__all__ = ["GRAMMAR", "draw_program"]

GRAMMAR: tuple[type[Node], ...] = (
    Map,
    Filter,
    FlatMap,
    Union,
    Repartition,
    AssignTimestamps,
    Reduce,
    Window,
    KeyedProcess,
    Process,
    HoldBack,
    CoMap,
    CoProcess,
    IntervalJoin,
    LateIntervalJoin,
    WindowJoin,
    WindowCoGroup,
    AsyncWait,
    Broadcast,
    Match,
    Bundle,
    Query,
    Sink,
)
"""The nodes that are drawn behind the sources."""
_TIMED = (Window, KeyedProcess, Match)
_TRIES = 30


def draw_program(seed: int | str, grammar: tuple[type[Node], ...] = GRAMMAR) -> Program:
    """Draws a program: the same one for the same seed and grammar.

    ``grammar`` may have nodes of your own: ``draw_program(7, (*GRAMMAR, MyNode))``.
    """
    rng = random.Random(f"program {seed}")
    sketch = Sketch(rng, ends=rng.random() < 0.8)
    for _ in range(rng.choices((1, 2, 3, 4), (8, 5, 2, 1))[0]):
        while not sketch.add(Source.draw(sketch)):
            pass
    sketch.ends = all(getattr(node, "bounded", True) for node in sketch.nodes)
    if not sketch.ends and sketch.chance(0.7):
        _draw_behind_idle(sketch, grammar)
    _draw_some(sketch, grammar, (AssignTimestamps,), 0.25)
    _draw_operators(sketch, grammar, rng.choices((1, 2, 4, 7), (2, 4, 5, 2))[0])
    if any(kind.has_event_time and not sketch.is_read(ref) for ref, kind in sketch.types.items()):
        _draw_some(sketch, grammar, _TIMED, 0.7)
    for ref in list(sketch.types):
        # a job that does not end is stopped when the sinks of its sources have all records
        if not sketch.is_read(ref) or (sketch.nodes[ref.node].is_source and not sketch.ends):
            sketch.add(Sink.of(sketch, ref))
    return Program(tuple(sketch.nodes), str(seed), sketch.ends)


def _draw_some(sketch: Sketch, grammar: tuple[type[Node], ...], kinds: tuple[type[Node], ...], share: float) -> None:
    """Draws one node of these kinds in a share of all programs: shapes that many programs of users have."""
    if sketch.chance(share):
        _draw_operators(sketch, tuple(node for node in grammar if node in kinds) or grammar, 1)


def _draw_behind_idle(sketch: Sketch, grammar: tuple[type[Node], ...]) -> None:
    """Draws a node, with a sink, whose results need watermarks of a source that becomes idle and does not end.

    At the end of a source event time ends, even if watermarks before were wrong.
    """
    sources = [node for node in sketch.nodes if isinstance(node, Source) and not node.bounded]
    lasting = {Ref(source.id) for source in sources if sketch.types[Ref(source.id)].idle}
    kinds = [node for node in grammar if node in _TIMED] if lasting else []
    for _ in range(_TRIES if kinds else 0):
        node = sketch.rng.choice(kinds).draw(sketch)
        if node is not None and node.waits_for_time and node.inputs[0] in lasting and sketch.add(node):
            sketch.add(Sink.of(sketch, Ref(node.id)))
            break


def _draw_operators(sketch: Sketch, grammar: tuple[type[Node], ...], count: int) -> None:
    wanted = len(sketch.nodes) + count
    weights = [node.weight for node in grammar]
    for _ in range(10 * count):
        if len(sketch.nodes) >= wanted:
            break
        node = sketch.rng.choices(grammar, weights)[0].draw(sketch)
        if node is not None:
            sketch.add(node)
