"""Computes what each sink of a program must hold."""

from __future__ import annotations

from typing import Any

from firesteel.testing.programs.oracle.flow import Flow, Mode
from firesteel.testing.programs.program import Program, Ref
from firesteel.testing.programs.records import canonical

__all__ = ["evaluate"]


def evaluate(program: Program, mode: Mode = Mode.STREAM) -> dict[int, list[Any]]:
    """Returns the records of each sink, by its node id."""
    flows: dict[Ref, Flow] = {}
    results: dict[int, list[Any]] = {}
    for node in program.nodes:
        inputs = [flows[ref] for ref in node.inputs]
        if node.is_sink:
            results[node.id] = [canonical(record.value) for record in inputs[0].records()]
        for tag, flow in node.interpret(inputs, mode).items():
            flows[Ref(node.id, tag)] = flow
    return results
