"""Plans as trees of text: one node a line, with the exchanges between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from firesteel.table.environment.statements.row_counts import KnownRows, row_count
from firesteel.table.plan.exchanges import FORWARD, distributions
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.plan.traits import Traits

__all__ = ["PlanTree"]

_BELOW = {"": "", "+- ": "   ", ":- ": ":  "}


class PlanTree:
    """Prints the plans of one job.

    ``traits`` adds the kinds of rows that nodes emit, ``with_cost`` how many there are, and ``with_reuse`` shows a
    relation that several nodes read once. ``phases`` has the texts of the operators of a node: its own, and those that
    run before rows are exchanged.
    """

    def __init__(
        self,
        plans: Sequence[LogicalNode],
        traits: Mapping[LogicalNode, Traits] | None = None,
        *,
        with_cost: bool = False,
        known_rows: KnownRows = lambda _: None,
        with_exchanges: bool = True,
        with_reuse: bool = False,
        phases: Callable[[LogicalNode], tuple[str, list[str]]] | None = None,
    ) -> None:
        self._plans = plans
        self._traits = traits or {}
        self._with_cost = with_cost
        self._known_rows = known_rows
        self._with_exchanges = with_exchanges
        self._phases = phases or (lambda node: (node.describe(), []))
        self._numbers: dict[LogicalNode, int] = {}
        self._shown: set[LogicalNode] = set()
        if with_reuse:
            self._number_shared()

    def print(self) -> str:
        """The trees, one after the other."""
        return "\n".join("".join(self._lines(plan, "", "")) for plan in self._plans)

    def _number_shared(self) -> None:
        """Numbers the largest relations that several nodes read."""
        readers: Counter[LogicalNode] = Counter()
        seen: set[LogicalNode] = set()
        left = list(reversed(self._plans))
        while left:
            node = left.pop()
            if node in seen:
                continue
            seen.add(node)
            for below in node.inputs():
                readers[below] += 1
                left.append(below)
        shared = (node for node, count in readers.items() if count > 1 and node.inputs())
        self._numbers = {node: number for number, node in enumerate(shared, 1)}

    def _lines(self, node: LogicalNode, prefix: str, branch: str) -> Iterator[str]:
        number = self._numbers.get(node)
        if number is not None and node in self._shown:
            yield f"{prefix}{branch}Reused(reference_id=[{number}])\n"
            return
        self._shown.add(node)
        reuse = "" if number is None else f"(reuse_id=[{number}])"
        below = prefix + _BELOW[branch]
        inputs = node.inputs()
        # the plan of a subquery stands between the node and its inputs
        own_text, before = self._phases(node)
        text = self._text(node, own_text).replace("\n", f"\n{below}{':' if inputs else ' '}    ")
        yield f"{prefix}{branch}{text}{reuse}\n"
        exchanges = distributions(node) if self._with_exchanges else [FORWARD] * len(inputs)
        for index, (each, exchange) in enumerate(zip(inputs, exchanges, strict=True)):
            own = "+- " if index == len(inputs) - 1 else ":- "
            if exchange == FORWARD:
                yield from self._lines(each, below, own)
                continue
            yield f"{below}{own}Exchange(distribution=[{exchange}])\n"
            indent = below + _BELOW[own]
            for operator in before:
                yield f"{indent}+- {operator}\n"
                indent += _BELOW["+- "]
            yield from self._lines(each, indent, "+- ")

    def _text(self, node: LogicalNode, text: str) -> str:
        if node in self._traits:
            mode = f"changelogMode=[{self._traits[node].mode}]"
            is_call = text.endswith(")")
            text = f"{text[:-1]}{'' if text.endswith('()') else ', '}{mode})" if is_call else f"{text}({mode})"
        if self._with_cost:
            count = row_count(node, self._known_rows)
            text += f": rowcount = {'unknown' if count is None else count}"
        return text
