"""What changelog each node of a streaming plan produces, and by which columns its rows are identified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from firesteel.common.types import RowKind
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import Keys, LogicalNode

__all__ = ["Traits", "infer_traits"]


@dataclass(frozen=True)
class Traits:
    """The changelog of a node."""

    mode: ChangelogMode
    keys: Keys
    """Sets of columns, each of which identifies a row."""

    @property
    def emits_update_before(self) -> bool:
        """Whether the row before an update is emitted."""
        return RowKind.UPDATE_BEFORE in self.mode.kinds


def infer_traits(roots: Sequence[LogicalNode]) -> dict[LogicalNode, Traits]:
    """The traits of all nodes of plans. Raises ValidationError for a plan that cannot run as a stream.

    From sources to sinks: which kinds of rows nodes can produce. From sinks to sources: where the row before an update
    is needed. A node with several consumers emits what any of them needs.
    """
    order = list(_inputs_first(roots))
    modes: dict[LogicalNode, ChangelogMode] = {}
    keys: dict[LogicalNode, Keys] = {}
    for node in order:
        modes[node] = node.changelog([modes[below] for below in node.inputs()])
        keys[node] = node.upsert_keys([keys[below] for below in node.inputs()])
    # those who read the rows of a plan get whole changelogs; a sink says what it needs
    before = {node: node in roots for node in order}
    for node in reversed(order):
        before[node], wanted = node.wanted_updates(before[node])
        for below, is_wanted in zip(node.inputs(), wanted, strict=True):
            before[below] |= is_wanted
    return {node: Traits(_mode(modes[node], before[node]), keys[node]) for node in order}


def _mode(mode: ChangelogMode, before: bool) -> ChangelogMode:
    return mode if before else ChangelogMode.of(mode.kinds - {RowKind.UPDATE_BEFORE})


def _inputs_first(roots: Sequence[LogicalNode]) -> Iterator[LogicalNode]:
    """Each node once, after its inputs and before all of its consumers."""
    seen: set[LogicalNode] = set()

    def visit(node: LogicalNode) -> Iterator[LogicalNode]:
        if node in seen:
            return
        seen.add(node)
        for below in node.inputs():
            yield from visit(below)
        yield node

    for root in roots:
        yield from visit(root)
