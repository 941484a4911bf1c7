"""What Spark tells of its executors and slots, while they come and go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.graph.job_graph_generator import create_job_graph
from firesteel.spark.host_creation import create_host
from firesteel.spark.session.cluster_info import executors
from firesteel.spark.session.slots import available_slots


def executor(number: int, address: str) -> Any:
    return SimpleNamespace(
        id=lambda: str(number),
        hostPort=lambda: address,
        maxTasks=lambda: 2,
        totalCores=lambda: 2,
        addTime=lambda: SimpleNamespace(getTime=lambda: number),
        maxMemory=lambda: 1 << 20,
    )


def context_of(*found: Any, tasks: int = 0, dynamic: str = "false") -> Any:
    scala = SimpleNamespace(
        statusStore=lambda: SimpleNamespace(
            executorList=lambda _active: SimpleNamespace(size=lambda: len(found), apply=lambda index: found[index])
        ),
        resourceProfileManager=lambda: SimpleNamespace(defaultResourceProfile=lambda: None),
        maxNumConcurrentTasks=lambda _profile: tasks,
    )
    return SimpleNamespace(
        master="spark://localhost:7077",
        _jsc=SimpleNamespace(sc=lambda: scala),
        getConf=lambda: SimpleNamespace(
            get=lambda key, default: {"spark.dynamicAllocation.enabled": dynamic}.get(key, default)
        ),
    )


@pytest.mark.parametrize("address", ["10.0.0.2", "10.0.0.2:", ""])
def test_an_executor_that_is_just_registering_has_no_port_yet(address: str) -> None:
    known = executors(context_of(executor(1, "10.0.0.1:4040"), executor(2, address)))
    assert [(found.executor_id, found.port) for found in known] == [("1", 4040)]


@pytest.mark.parametrize(("tasks", "dynamic", "slots"), [(0, "false", 0), (0, "true", 1), (3, "true", 3)])
def test_dynamic_allocation_offers_a_slot_to_begin_with(tasks: int, dynamic: str, slots: int) -> None:
    assert available_slots(context_of(tasks=tasks, dynamic=dynamic)) == slots


def test_long_lived_tasks_are_refused_with_dynamic_allocation() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_sequence(1, 10).print()
    graph = create_job_graph(env._generate_stream_graph("job", clear=True))
    with pytest.raises(InvalidProgramError, match=r"spark\.dynamicAllocation\.enabled"):
        create_host(graph, context_of(dynamic="true"))
