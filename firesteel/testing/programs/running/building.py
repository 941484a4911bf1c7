"""Turns a program into calls of the DataStream API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from firesteel.datastream.output_tag import OutputTag
from firesteel.testing.programs.program import Node, Program, Ref
from firesteel.testing.programs.running.faults import Trip

__all__ = ["Site", "build"]

F = TypeVar("F")


@dataclass
class Site:
    """Where a program is built: its environment, its directory, and what is to go wrong."""

    env: Any
    directory: Path
    trips: Mapping[str, Trip] = field(default_factory=dict)
    """By node id, or by node id and function: ``3``, ``3.key``."""

    def arm(self, node: Node, function: F, place: str = "") -> F:
        """Returns the function with the exception that it is to raise, if any."""
        trip = self.trips.get(f"{node.id}.{place}" if place else str(node.id))
        return function if trip is None else replace(function, trip=trip)  # type: ignore[type-var]

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls a function of the API that is no method of a stream, such as ``AsyncDataStream.ordered_wait``."""
        return function(*args)

    def hold(self, stream: Any) -> Any:
        """Returns a stream that a node uses more than once."""
        return stream

    def finish(self, stream: Any, node: Node) -> Any:
        """Sets name, uid, parallelism and chaining of an operator."""
        stream = stream.name(f"{node.kind} {node.id}").uid(f"node-{node.id}")
        if node.parallelism is not None:
            stream = stream.set_parallelism(node.parallelism)
        if node.chain == "new":
            stream = stream.start_new_chain()
        elif node.chain == "off":
            stream = stream.disable_chaining()
        return stream

    def sink_directory(self, node: Node) -> Path:
        """Returns where a sink of the program commits its records."""
        return self.directory / f"sink-{node.id}"


def build(program: Program, site: Site, assign: Callable[[Ref, Any], Any] = lambda _ref, stream: stream) -> None:
    """Makes the program's streams and sinks in the environment of the site.

    ``assign`` is given every stream as soon as it is made, and returns what to use for it.
    """
    streams: dict[Ref, Any] = {}
    for node in program.nodes:
        for ref in node.inputs:
            if ref not in streams:
                streams[ref] = assign(ref, streams[Ref(ref.node)].get_side_output(OutputTag(ref.tag)))
        made = node.build([streams[ref] for ref in node.inputs], site)
        streams[Ref(node.id)] = assign(Ref(node.id), made)
