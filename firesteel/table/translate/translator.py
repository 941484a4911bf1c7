"""Translator: makes streams of optimized plans."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from firesteel.config.configuration import Configuration
from firesteel.config.table_options import IDLE_STATE_RETENTION, MINI_BATCH_ENABLED
from firesteel.datastream.data_stream import DataStream, parallelism_of
from firesteel.datastream.streams.keyed_stream import KeyedStream
from firesteel.graph.transformation import PartitionTransformation, TwoInputTransformation
from firesteel.runtime.columns.keys import ColumnKeySelector
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.model.partitioner import KeyGroupPartitioner
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.session import Session
from firesteel.table.plan.changelogs import ToChangelog
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.plan.streaming import NamedQuery, Sink, uid_below
from firesteel.table.plan.time_joins import TemporalJoin
from firesteel.table.plan.traits import Traits, infer_traits
from firesteel.table.translate.descriptions import describe_operator
from firesteel.table.translate.signatures import signature_of

if TYPE_CHECKING:
    from firesteel.datastream import StreamExecutionEnvironment

__all__ = ["Translator", "translates"]

Columns = DataStream[Any]
"""A stream of column batches."""
MAX_DESCRIPTION = 1000
"""Characters of an operator's description; VALUES may have many rows."""
N = TypeVar("N", bound=LogicalNode)
_ANONYMOUS = re.compile(r"(\.Unregistered_\w+)_\d+$")
_TRANSLATIONS: dict[type[LogicalNode], Callable[[Any, Translator], Any]] = {}


def translates(kind: type[N]) -> Callable[[Callable[[N, Translator], Any]], Callable[[N, Translator], Any]]:
    """Registers a function as the translation of a kind of nodes."""

    def register(function: Callable[[N, Translator], Any]) -> Callable[[N, Translator], Any]:
        _TRANSLATIONS[kind] = function
        return function

    return register


class Translator:
    """Makes streams of plans. A node that occurs several times becomes one stream."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        roots: Sequence[LogicalNode],
        configuration: Configuration | None = None,
        session: Session | None = None,
        uids: Mapping[LogicalNode, Sequence[tuple[str, str]]] | None = None,
    ) -> None:
        self.environment = environment
        self.configuration = configuration or Configuration()
        self.session = session or Session()
        self._traits = infer_traits(roots)
        self._versions = {
            below for node in self._traits if isinstance(node, TemporalJoin) for below in _below(node.right)
        }
        self._shown = {below for node in self._traits if isinstance(node, ToChangelog) for below in _below(node.input)}
        self._done: dict[LogicalNode, Any] = {}
        self._query_uid: str | None = None
        """The UID hint of the query whose operators are made."""
        self._node: LogicalNode | None = None
        """The node whose operators are made."""
        self._known_uids = {node: list(known) for node, known in (uids or {}).items()}
        self.uids: dict[LogicalNode, list[tuple[str, str]]] = {}
        """For each node the names and uids of its operators, in the order in which they were made."""
        self.has_keys = False
        """Whether rows are exchanged by key."""

    def translate(self, node: LogicalNode) -> Any:
        """The stream of a node: of column batches with its row type."""
        if node not in self._done:
            function = _TRANSLATIONS.get(type(node))
            if function is None:
                raise ValidationError(f"{type(node).__name__} is not supported in streaming queries yet.")
            around = self._query_uid, self._node
            self._query_uid, self._node = self._uid_within(node), node
            self._done[node] = stream = function(node, self)
            self._query_uid, self._node = around
            self._describe(node, stream)
        return self._done[node]

    def _uid_within(self, node: LogicalNode) -> str | None:
        if isinstance(node, NamedQuery):
            return node.uid
        return uid_below(node) if isinstance(node, Sink) else self._query_uid

    def identify(self, operator: Any, name: str, node: LogicalNode | None) -> None:
        """Gives an operator the uid by which savepoints know it; ``node`` is what it computes.

        Without a UID hint the uid depends on what the node computes, so state is never restored into an operator that
        computes something else. With a hint it depends on the types of columns and the functions only. A compiled plan
        has the uids that its operators had when it was compiled.
        """
        if operator.uid is not None or isinstance(operator, PartitionTransformation):
            return
        name = _ANONYMOUS.sub(r"\1", name)  # the number depends on what else the process has done
        operator.uid = self._known_uid(name) or self._new_uid(name, node)
        if self._node is not None:
            self.uids.setdefault(self._node, []).append((name, operator.uid))

    def _known_uid(self, name: str) -> str | None:
        known = self._known_uids.get(self._node, []) if self._node is not None else []
        place = next((index for index, (other, _) in enumerate(known) if other == name), None)
        return None if place is None else known.pop(place)[1]

    def _new_uid(self, name: str, node: LogicalNode | None) -> str:
        uid = f"{name}-{'' if node is None else signature_of(node, is_named=self._query_uid is not None)}"
        if self._query_uid is not None:
            uid = f"{self._query_uid}/{uid}"
        self.environment._query_operators[uid] += 1
        return f"{uid}-{self.environment._query_operators[uid]}"

    @staticmethod
    def _describe(node: LogicalNode, stream: Any) -> None:
        """Gives the operator of a node the text that EXPLAIN has for it, which the plan of the job shows."""
        operator = getattr(stream, "_transformation", None)
        if operator is not None and operator.description is None:
            text = describe_operator(node)
            operator.description = _short(text)

    def traits(self, node: LogicalNode) -> Traits:
        """The changelog of a node."""
        return self._traits[node]

    def is_per_row(self, node: LogicalNode) -> bool:
        """Whether every row is a change of its own for a node: without mini-batches, and below TO_CHANGELOG."""
        return not self.configuration.get(MINI_BATCH_ENABLED) or node in self._shown

    def keeps_changes(self, node: LogicalNode) -> bool:
        """Whether a node emits all changes of a row, not the last of a batch: if asked to, and for temporal joins.

        Each change is a version of the row, which rows of its time are joined with.
        """
        return self.is_per_row(node) or node in self._versions

    @property
    def state_ttl_ms(self) -> int:
        """How long state is kept after its last update; 0 for ever."""
        return self.configuration.get(IDLE_STATE_RETENTION).to_millis()

    def keyed(self, stream: Columns, columns: Sequence[int]) -> KeyedStream[Any, Any]:
        """The stream by key; without columns, all rows have the same key."""
        self.has_keys = True
        selector = ColumnKeySelector(tuple(columns))
        partition = stream._partition(KeyGroupPartitioner(selector))
        return KeyedStream(self.environment, partition, selector, None, stream)  # type: ignore[arg-type]

    def apply(
        self,
        stream: Columns,
        name: str,
        spec: OperatorSpec,
        *,
        is_single: bool = False,
        state_of: LogicalNode | None = None,
        description: str | None = None,
    ) -> Columns:
        """The stream of an operator over a stream; a single one has one subtask, one with state that of a node.

        Rows stay where they are unless the stream is keyed: changes of a row must not overtake each other.
        """
        applied = stream._transform(name, spec, None)
        applied._transformation.description = _short(description)
        if state_of is not None:
            self.identify(applied._transformation, type(state_of).__name__, state_of)
        if is_single:
            return applied.force_non_parallel()
        parallelism = None if isinstance(stream, KeyedStream) else parallelism_of(stream._transformation)
        return applied if parallelism is None else applied.set_parallelism(parallelism)

    def connect(self, left: Columns, right: Columns, name: str, spec: OperatorSpec, node: LogicalNode) -> Columns:
        """The stream of the operator of a node over two streams, which are both keyed or both not."""
        transformation = TwoInputTransformation(
            left._transformation,
            right._transformation,
            spec,
            key_selectors=(left._key_selector, right._key_selector),
            name=name,
        )
        self.environment._add_operator(transformation)
        self.identify(transformation, type(node).__name__, node)
        return DataStream(self.environment, transformation)


def _short(text: str | None) -> str | None:
    return text if text is None or len(text) <= MAX_DESCRIPTION else f"{text[: MAX_DESCRIPTION - 3]}..."


def _below(node: LogicalNode) -> Iterator[LogicalNode]:
    """A node and all of which it is made."""
    yield node
    for below in node.inputs():
        yield from _below(below)
