"""Virtual time, simulated threads and processes."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from firesteel.testing.simulation.machine.network import Network
from firesteel.testing.simulation.machine.scheduler import Machine, Process, Scheduler
from firesteel.testing.simulation.machine.standard_library import simulated_standard_library
from firesteel.testing.simulation.machine.story import Story


class World:
    """A simulation with one machine."""

    def __init__(self, seed: int = 1):
        self.simulation = Scheduler(seed, Story())
        self.network = Network(self.simulation)
        self.machine = self.network.add_machine("m1")

    def start(self, body: Callable[[], Any], machine: Machine | None = None) -> Process:
        return self.simulation.start_process("p", machine or self.machine, body)

    def run(self, *bodies: Callable[[], Any]) -> None:
        with simulated_standard_library(self.simulation, self.network):
            for body in bodies:
                self.start(body)
            self.simulation.run()
            self.simulation.close()
        assert self.simulation.uncaught == []


def test_sleeping_takes_virtual_time_only() -> None:
    seen: list[float] = []

    def body() -> None:
        begun = time.monotonic()
        time.sleep(3600)
        seen.append(time.monotonic() - begun)

    before = time.process_time()
    World().run(body)
    assert seen == [pytest.approx(3600, abs=0.1)]
    assert time.process_time() - before < 5


def test_outside_of_the_simulation_clocks_and_threads_are_real() -> None:
    world = World()
    seen: list[Any] = []

    def look() -> None:
        seen.append((time.time() > 1_780_000_000, os.getpid(), type(threading.Lock()).__module__))

    def body() -> None:
        real = world.simulation.running
        assert real is not None
        seen.append((time.time() < 1_780_000_000, os.getpid(), type(threading.Lock()).__module__))

    pid = os.getpid()
    thread = threading.Thread(target=look)
    with simulated_standard_library(world.simulation, world.network):
        world.start(body)
        world.simulation.run()
        thread.start()
        thread.join()
        world.simulation.close()
    assert seen[0] == (True, 101, "firesteel.testing.simulation.machine.threads")
    assert seen[1] == (True, pid, "_thread")


def test_queues_events_and_executors_work_between_simulated_threads() -> None:
    seen: list[Any] = []

    def body() -> None:
        numbers: queue.Queue[int] = queue.Queue()
        done = threading.Event()

        def produce() -> None:
            for number in range(3):
                time.sleep(1)
                numbers.put(number)
            done.set()

        threading.Thread(target=produce).start()
        seen.extend(numbers.get(timeout=5) for _ in range(3))
        assert done.wait(5)
        with pytest.raises(queue.Empty):
            numbers.get(timeout=0.5)
        with ThreadPoolExecutor(2) as pool:
            futures: list[Future[int]] = [pool.submit(lambda n=n: n * 10) for n in range(3)]
            seen.append([future.result(1) for future in futures])
        waited = time.monotonic()
        with pytest.raises(TimeoutError):
            Future().result(2)
        assert time.monotonic() - waited == pytest.approx(2, abs=0.1)

    World().run(body)
    assert seen == [0, 1, 2, [0, 10, 20]]


def test_a_lock_is_held_while_its_owner_sleeps() -> None:
    order: list[str] = []

    def body() -> None:
        lock = threading.Lock()

        def other() -> None:
            with lock:
                order.append("other")

        with lock:
            threading.Thread(target=other).start()
            time.sleep(5)
            order.append("first")
        time.sleep(1)
        assert not lock.locked()

    World().run(body)
    assert order == ["first", "other"]


def test_what_a_killed_process_does_has_no_effect() -> None:
    world = World()
    seen: list[str] = []

    def body() -> None:
        try:
            threading.Thread(target=lambda: time.sleep(100)).start()
            time.sleep(100)
            seen.append("woke")
        finally:
            seen.append("cleaning up")  # its own memory: nobody sees it
            world.network.create_server(("m1", 80))
            seen.append("listening")

    with simulated_standard_library(world.simulation, world.network):
        process = world.start(body)
        world.simulation.after(50_000_000, lambda: process.kill("test"))
        world.simulation.run()
        assert not process.alive
        assert process.threads == {}
    assert seen == ["cleaning up"]
    assert world.network.listeners == {}


def test_a_frozen_process_goes_on_where_it_was() -> None:
    world = World()
    seen: list[float] = []

    def body() -> None:
        for _ in range(3):
            time.sleep(10)
            seen.append(round(time.monotonic()))

    with simulated_standard_library(world.simulation, world.network):
        process = world.start(body)
        world.simulation.after(15_000_000, process.freeze)
        world.simulation.after(60_000_000, process.thaw)
        world.simulation.run()
    assert seen == [10, 60, 70]


def test_machines_have_wall_clocks_of_their_own() -> None:
    world = World()
    other = world.network.add_machine("m2")
    other.clock_offset_us = 3_600_000_000
    seen: list[tuple[int, int]] = []

    def body() -> None:
        time.sleep(1)
        seen.append((int(time.time()), round(time.monotonic())))

    with simulated_standard_library(world.simulation, world.network):
        world.start(body)
        world.start(body, other)
        world.simulation.run()
    (here, now), (there, also_now) = sorted(seen)
    assert there - here == 3600
    assert now == also_now == 1


def test_a_thread_that_raises_is_told_of() -> None:
    world = World()

    def body() -> None:
        threading.Thread(target=lambda: 1 / 0, name="faulty").start()
        time.sleep(1)

    with simulated_standard_library(world.simulation, world.network):
        world.start(body)
        world.simulation.run()
    assert world.simulation.uncaught == ["p/faulty: ZeroDivisionError: division by zero"]


def test_the_order_is_drawn_from_the_seed() -> None:
    def order(seed: int) -> list[int]:
        seen: list[int] = []

        def body() -> None:
            threads = [threading.Thread(target=seen.append, args=(n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        World(seed).run(body)
        return seen

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(8)}) > 1
