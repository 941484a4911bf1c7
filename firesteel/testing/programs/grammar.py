"""Draws whole programs from a seed."""

from __future__ import annotations

import random

from firesteel.testing.programs.nodes.reductions import Reduce
from firesteel.testing.programs.nodes.sinks import Sink
from firesteel.testing.programs.nodes.sources import Source
from firesteel.testing.programs.nodes.stateless import Filter, FlatMap, Map, Repartition, Union
from firesteel.testing.programs.nodes.windows import Window
from firesteel.testing.programs.program import Node, Program, Sketch

__all__ = ["GRAMMAR", "draw_program"]

GRAMMAR: tuple[type[Node], ...] = (Map, Filter, FlatMap, Union, Repartition, Reduce, Window, Sink)
"""The nodes that are drawn behind the sources."""


def draw_program(seed: int | str, grammar: tuple[type[Node], ...] = GRAMMAR) -> Program:
    """Draws a program: the same one for the same seed and grammar.

    ``grammar`` may have nodes of your own: ``draw_program(7, (*GRAMMAR, MyNode))``.
    """
    rng = random.Random(f"program {seed}")
    sketch = Sketch(rng, ends=rng.random() < 0.85)
    for _ in range(rng.choices((1, 2, 3, 4), (8, 5, 2, 1))[0]):
        while not sketch.add(Source.draw(sketch)):
            pass
    sketch.ends = all(_ends(node) for node in sketch.nodes)
    wanted = len(sketch.nodes) + rng.choices((1, 2, 4, 7), (2, 4, 5, 2))[0]
    for _ in range(40):
        if len(sketch.nodes) >= wanted:
            break
        node_class = rng.choices(grammar, [node.weight for node in grammar])[0]
        node = node_class.draw(sketch)
        if node is not None:
            sketch.add(node)
    for ref in [ref for ref in sketch.types if not sketch.is_read(ref) or not _ends(sketch.nodes[ref.node])]:
        # an endless source is stopped when a sink of its own has all its records
        sketch.add(Sink.of(sketch, ref))
    program = Program(tuple(sketch.nodes), str(seed), sketch.ends)
    program.types()
    return program


def _ends(node: Node) -> bool:
    return getattr(node, "bounded", True)
