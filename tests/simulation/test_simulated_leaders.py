"""Leader election on a simulated ZooKeeper and in a simulated directory."""

from __future__ import annotations

import pytest

from firesteel.testing.simulation.cluster import Cluster, ClusterSettings, RequestFailedError

pytestmark = pytest.mark.parametrize("ha", ["zookeeper", "filesystem"])


def leader_names(cluster: Cluster, at_s: tuple[float, ...]) -> list[list[str]]:
    """Who leads at some times."""
    seen: list[list[str]] = []
    for time_s in at_s:
        cluster.simulation.at(
            int(time_s * 1e6), None, 0, lambda: seen.append([leader.name for leader in cluster.leaders()])
        )
    cluster.simulation.at(int(at_s[-1] * 1e6) + 1, None, 0, cluster.simulation.stop)
    cluster.simulation.run()
    return seen


def test_a_standby_takes_over_from_a_leader_that_is_killed(ha: str) -> None:
    cluster = Cluster(1, ClusterSettings(jobmanagers=2, ha=ha))
    with cluster.entered():
        cluster.start()

        def kill() -> None:
            leader = cluster.leaders()[0]
            leader.stopped = True  # for good
            assert leader.process is not None
            leader.process.kill("test")

        cluster.simulation.after(20_000_000, kill)
        (first,), (second,) = leader_names(cluster, (19, 40))
    assert {first, second} == {"jm-1", "jm-2"}


def test_a_frozen_leader_comes_back_as_a_standby(ha: str) -> None:
    cluster = Cluster(1, ClusterSettings(jobmanagers=2, ha=ha))
    with cluster.entered():
        cluster.start()

        def freeze() -> None:
            process = cluster.leaders()[0].process
            assert process is not None
            process.freeze()
            cluster.simulation.after(60_000_000, process.thaw)

        cluster.simulation.after(20_000_000, freeze)
        before, during, after = leader_names(cluster, (19, 60, 120))
    assert len(before) == 1
    assert len(during) == 2  # it cannot know yet
    assert set(during) - set(before) == set(after)
    assert cluster.simulation.uncaught == []


def test_nobody_answers_while_nobody_leads(ha: str) -> None:
    cluster = Cluster(1, ClusterSettings(jobmanagers=1, ha=ha))
    answers: list[object] = []

    def ask() -> None:
        try:
            answers.append(cluster.ask(lambda dispatcher: dispatcher.jobs()))
        except RequestFailedError as error:
            answers.append(str(error))

    with cluster.entered():
        cluster.start()
        simulation = cluster.simulation
        start = lambda: simulation.start_process("client", cluster.client_machine, ask)
        simulation.after(15_000_000, start)
        simulation.after(20_000_000, lambda: cluster.leaders()[0].process.kill("test"))  # type: ignore[union-attr]
        simulation.after(20_100_000, start)
        simulation.after(25_000_000, simulation.stop)
        simulation.run()
    assert answers == [[], "nobody leads"]
