from __future__ import annotations

import json
import textwrap

from firesteel.graph.job_graph_generator import create_job_graph
from firesteel.graph.plan import execution_plan, job_plan, to_mermaid, to_text


def test_execution_plan_has_flinks_shape(program) -> None:
    source = program.source("orders", parallelism=2)
    sink = program.sink(program.op(source, parallelism=2, description="to upper"), parallelism=1)
    window = program.keyed(source, parallelism=2)
    plan = json.loads(execution_plan(program.stream_graph()))
    middle = sink.inputs[0].id
    assert plan == {
        "nodes": [
            {
                "id": source.id,
                "type": "Source: orders",
                "pact": "Data Source",
                "contents": "Source: orders",
                "parallelism": 2,
            },
            {
                "id": middle,
                "type": "Map",
                "pact": "Operator",
                "contents": "to upper",
                "parallelism": 2,
                "predecessors": [
                    {"id": source.id, "ship_strategy": "FORWARD", "side": "second", "exchange": "chained"}
                ],
            },
            {
                "id": window.id,
                "type": "Window",
                "pact": "Operator",
                "contents": "Window",
                "parallelism": 2,
                "predecessors": [
                    {"id": source.id, "ship_strategy": "HASH", "side": "second", "exchange": "pipelined_bounded"}
                ],
            },
            {
                "id": sink.id,
                "type": "Sink: out",
                "pact": "Data Sink",
                "contents": "Sink: out",
                "parallelism": 1,
                "predecessors": [
                    {"id": middle, "ship_strategy": "REBALANCE", "side": "second", "exchange": "pipelined_bounded"}
                ],
            },
        ],
        "execution": {"kind": "pipelined", "reason": "it is the default"},
    }


def test_execution_plan_of_a_batch(program) -> None:
    program.sink(program.keyed(program.source("in")))
    plan = json.loads(execution_plan(program.stream_graph(**{"execution.runtime-mode": "BATCH"})))
    assert plan["execution"]["kind"] == "batch"
    assert [[p["exchange"] for p in node.get("predecessors", [])] for node in plan["nodes"]] == [
        [],
        ["blocking"],
        ["chained"],
    ]


def test_job_plan_has_the_rest_apis_shape(program) -> None:
    operator = program.op(program.source("in"), description='a < b & "c"\\d')
    program.sink(operator, "x")
    program.keyed(operator)
    graph = create_job_graph(program.stream_graph(), job_id="0" * 32)
    first, second = graph.vertices
    plan = job_plan(graph)
    assert plan == {
        "jid": "0" * 32,
        "name": "job",
        "type": "STREAMING",
        "nodes": [
            {
                "id": first.id,
                "operator": "",
                "parallelism": 1,
                "operator_strategy": "",
                "description": ("Source: in<br/>+- a &lt; b &amp; &quot;c&quot;&#92;d<br/>   +- Sink: x"),
                "optimizer_properties": {},
            },
            {
                "id": second.id,
                "operator": "",
                "parallelism": 1,
                "operator_strategy": "",
                "description": "Window",
                "optimizer_properties": {},
                "inputs": [
                    {
                        "id": first.id,
                        "num": 0,
                        "exchange": "pipelined_bounded",
                        "ship_strategy": "HASH",
                        "exchange_reason": "both tasks run concurrently, and records are sent as they are produced",
                    }
                ],
            },
        ],
        "execution": {"kind": "pipelined", "reason": "it is the default"},
    }
    json.dumps(plan)


def test_job_plan_of_a_batch_says_what_is_grouped(program) -> None:
    program.sink(program.keyed(program.source("in")), parallelism=2)
    plan = job_plan(program.job_graph(**{"execution.runtime-mode": "BATCH"}))
    (keyed,), (sink,) = (node["inputs"] for node in plan["nodes"][1:])
    assert (keyed["exchange"], keyed["local_strategy"]) == ("blocking", "group by key")
    assert sink["exchange"] == "blocking"
    assert "local_strategy" not in sink
    assert plan["execution"] == {"kind": "batch", "reason": "execution.runtime-mode is BATCH"}


def test_description_draws_branches(program) -> None:
    operator = program.op(program.source("in"))
    program.sink(program.op(operator, "Filter"), "a")
    program.sink(operator, "b")
    (node,) = job_plan(program.job_graph())["nodes"]
    assert node["description"].split("<br/>") == [
        "Source: in",
        "+- Map",
        "   :- Filter",
        "   :  +- Sink: a",
        "   +- Sink: b",
    ]


def diamond(program):
    operator = program.op(program.source("in", parallelism=2), parallelism=2)
    left = program.keyed(operator, "Left", parallelism=2)
    late = program.keyed(program.side_output(operator, "late"), "Late", parallelism=2)
    program.sink(program.union(left, late), parallelism=1)
    return program.job_graph()


def test_text(program) -> None:
    assert to_text(diamond(program)) == textwrap.dedent(
        """\
        Job 'job': 4 vertices, 7 subtasks, 2 slots
        Execution: pipelined, because it is the default
        1: Source: in -> Map (parallelism 2)
        :- HASH, pipelined -> 2: Left (parallelism 2)
        :  +- REBALANCE, pipelined -> 4: Sink: out (parallelism 1)
        +- HASH [late], pipelined -> 3: Late (parallelism 2)
           +- REBALANCE, pipelined -> see 4
        """
    )


def test_mermaid(program) -> None:
    assert to_mermaid(diamond(program)) == textwrap.dedent(
        """\
        flowchart LR
          %% pipelined: it is the default
          v1["Source: in -#gt; Map<br/>parallelism 2"]
          v2["Left<br/>parallelism 2"]
          v3["Late<br/>parallelism 2"]
          v4["Sink: out<br/>parallelism 1"]
          v1 -->|"HASH, pipelined"| v2
          v1 -->|"HASH [late], pipelined"| v3
          v2 -->|"REBALANCE, pipelined"| v4
          v3 -->|"REBALANCE, pipelined"| v4
        """
    )


def test_mermaid_escapes_names(program) -> None:
    program.op(program.source('say "#1" <b>'))
    assert 'v1["Source: say #quot;#35;1#quot; #lt;b#gt; -#gt; Map<br/>' in to_mermaid(program.job_graph())
