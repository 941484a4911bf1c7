"""Plans as JSON documents.

A document has the version of its form, options that decide how nodes are run, and the nodes with their fields, their
types, and the names by which savepoints know their operators. Nodes refer to others by number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel import __version__
from firesteel.table.bound.errors import ValidationError
from firesteel.table.compiled.names import NODES
from firesteel.table.compiled.types import decode_type, encode_type
from firesteel.table.compiled.values import decode_fields, decode_value, encode_fields, encode_value
from firesteel.table.connector.sink import DynamicTableSink
from firesteel.table.connector.source import DynamicTableSource
from firesteel.table.plan.nodes import LogicalNode, TableScan
from firesteel.table.plan.streaming import Sink

__all__ = ["PLAN_VERSION", "OperatorUids", "PlanDocument", "decode_document", "encode_document"]

PLAN_VERSION = 1
"""The version of the form of documents; documents of later versions are refused."""

OperatorUids = Mapping[LogicalNode, Sequence[tuple[str, str]]]
"""For each node the operators that have state: what they are for it, and their uids."""
_NAMES = {class_: name for name, class_ in NODES.items()}


@dataclass(frozen=True)
class PlanDocument:
    """A plan that is read from a document."""

    roots: Sequence[Sink]
    uids: OperatorUids
    configuration: Mapping[str, str] = field(default_factory=dict)
    database: str | None = None
    version: str = __version__


EncodeTable = Callable[["TableScan | Sink"], Any]
"""The table of a scan or sink as JSON."""
DecodeTable = Callable[[Any, "dict[str, Any]"], "dict[str, Any]"]
"""What the JSON of a table and the fields of its node make of these fields: the source or sink is among them."""


def encode_document(document: PlanDocument, encode_table: EncodeTable) -> dict[str, Any]:
    """The document as JSON; equal nodes are one."""
    numbers: dict[LogicalNode, int] = {}
    nodes: list[dict[str, Any]] = []

    def encode(value: Any) -> Any:
        if isinstance(value, LogicalNode):
            return {"is": "node", "id": add(value)}
        if isinstance(value, tuple) and any(isinstance(part, LogicalNode) for part in value):
            return [encode(part) for part in value]
        return encode_value(value)

    def add(node: LogicalNode) -> int:
        if node in numbers:
            return numbers[node]
        if type(node) not in _NAMES:
            raise ValidationError(f"A compiled plan cannot contain {node.describe()}.")
        table = encode_table(node) if isinstance(node, (TableScan, Sink)) else None
        made = {name: part for name, part in encode_fields(node, _without_tables(encode)).items() if part is not _TABLE}
        numbers[node] = number = len(nodes) + 1
        operators = [{"name": name, "uid": uid} for name, uid in document.uids.get(node, ())]
        nodes.append(
            {
                "id": number,
                "type": _NAMES[type(node)],
                "description": node.describe(),
                "outputType": encode_type(node.row_type),
                "fields": made,
                **({} if table is None else {"table": table}),
                **({"operators": operators} if operators else {}),
            }
        )
        return number

    for root in document.roots:
        add(root)
    return {
        "firesteelVersion": document.version,
        "planVersion": PLAN_VERSION,
        "database": document.database,
        "configuration": dict(document.configuration),
        "nodes": nodes,
    }


_TABLE = object()


def _without_tables(encode: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Leaves out sources and sinks, which are made of their tables again."""

    def encoded(value: Any) -> Any:
        return _TABLE if isinstance(value, (DynamicTableSource, DynamicTableSink)) else encode(value)

    return encoded


def decode_document(json: Any, decode_table: DecodeTable) -> PlanDocument:
    """The plan of a document. Raises ValidationError if this version cannot read it."""
    if not isinstance(json, Mapping) or "nodes" not in json or "planVersion" not in json:
        raise ValidationError("This is not a compiled plan of Firesteel.", hint="COMPILE PLAN makes one.")
    if json["planVersion"] > PLAN_VERSION:
        raise ValidationError(
            f"The plan has version {json['planVersion']}, and this version of Firesteel reads up to {PLAN_VERSION}.",
            hint=f"It was compiled by Firesteel {json.get('firesteelVersion')}.",
        )
    found: dict[int, LogicalNode] = {}
    uids: dict[LogicalNode, list[tuple[str, str]]] = {}

    def decode(value: Any) -> Any:
        if isinstance(value, Mapping) and value.get("is") == "node":
            return found[value["id"]]
        if isinstance(value, list) and any(isinstance(part, Mapping) and part.get("is") == "node" for part in value):
            return tuple(map(decode, value))
        return decode_value(value)

    for entry in json["nodes"]:
        try:
            node = _node(entry, decode, decode_table)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValidationError(
                f"Node {entry.get('id')} of the plan ({entry.get('type')}) cannot be read: {error}"
            ) from error
        found[entry["id"]] = node
        uids[node] = [(operator["name"], operator["uid"]) for operator in entry.get("operators", ())]
    return PlanDocument(
        [node for node in found.values() if isinstance(node, Sink)],
        uids,
        json.get("configuration") or {},
        json.get("database"),
        json.get("firesteelVersion", ""),
    )


def _node(entry: Mapping[str, Any], decode: Callable[[Any], Any], decode_table: DecodeTable) -> LogicalNode:
    name = entry["type"]
    if name not in NODES:
        raise ValueError("this version has no such node")
    class_ = NODES[name]
    values = decode_fields(class_, entry["fields"], decode)
    if "table" in entry:
        values = decode_table(entry["table"], values)
    node = class_(**values)
    if node.row_type != decode_type(entry["outputType"]):
        raise ValueError(f"its rows would have the type {node.row_type}, not {entry['outputType']}")
    return node
