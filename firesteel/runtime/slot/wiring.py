"""Builds the tasks of a process and joins their channels: by reference, by pickle, or over the network."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from firesteel.config import network_options, pipeline_options
from firesteel.config.configuration import Configuration
from firesteel.runtime.model.deployment import TaskDeploymentDescriptor
from firesteel.runtime.model.messages import Address, TaskKey
from firesteel.runtime.model.metrics import Counter
from firesteel.runtime.network.config import NetworkConfig
from firesteel.runtime.network.environment import NetworkEnvironment
from firesteel.runtime.network.gate import InputChannel, InputGate
from firesteel.runtime.network.local import connect_local
from firesteel.runtime.network.partition import ResultPartition, ResultSubpartition
from firesteel.runtime.task.task import Task
from firesteel.runtime.task.task_services import TaskServices

__all__ = ["Wiring", "network_config"]

PEER_TIMEOUT_S = 60.0


def network_config(configuration: Configuration) -> NetworkConfig:
    """The network's numbers from Flink's options."""
    return NetworkConfig(
        segment_size=configuration.get(network_options.SEGMENT_SIZE).bytes,
        buffers_per_channel=configuration.get(network_options.BUFFERS_PER_CHANNEL),
        floating_buffers_per_gate=configuration.get(network_options.FLOATING_BUFFERS_PER_GATE),
        max_buffers_per_channel=configuration.get(network_options.MAX_BUFFERS_PER_CHANNEL),
    )


class Wiring:
    """The slots that this process hosts; all others are reached over the network."""

    def __init__(
        self,
        hosted_slots: Collection[int],
        configuration: Configuration,
        network: NetworkEnvironment | None = None,
    ):
        self._hosted = frozenset(hosted_slots)
        self._network = network
        self._config = network_config(configuration)
        self._watermark_interval = configuration.get(pipeline_options.AUTO_WATERMARK_INTERVAL).to_millis()
        self._inputs: dict[int, InputChannel] = {}
        self._local: list[tuple[int, ResultSubpartition, bool]] = []

    def connect_peers(self, peers: Mapping[int, Address]) -> None:
        """Connects to the processes of the other slots."""
        if self._network is not None:
            others = {slot: address for slot, address in peers.items() if slot not in self._hosted}
            self._network.connect_peers(others, PEER_TIMEOUT_S)

    def create_task(self, descriptor: TaskDeploymentDescriptor, services: TaskServices) -> Task:
        """A task with its gate and partitions; local channels are joined by ``connect``."""
        gate = self._create_gate(descriptor)
        partitions = []
        for output in descriptor.outputs:
            subpartitions = []
            for channel in output.channels:
                serialized = channel.producer_slot != channel.consumer_slot
                subpartition = ResultSubpartition(serialized=serialized, config=self._config)
                subpartitions.append(subpartition)
                if channel.consumer_slot in self._hosted:
                    self._local.append((channel.id, subpartition, serialized))
                else:
                    assert self._network is not None
                    self._network.register_output(channel.id, channel.consumer_slot, subpartition)
            first = descriptor.subtask % len(subpartitions)
            partitions.append((output, ResultPartition(subpartitions, config=self._config, first_channel=first)))
        return Task(descriptor, gate, partitions, services, self._watermark_interval)

    def _create_gate(self, descriptor: TaskDeploymentDescriptor) -> InputGate | None:
        channels = [channel for entry in descriptor.inputs for channel in entry.channels]
        if not channels:
            return None
        gate = InputGate(len(channels), config=self._config)
        for channel, input_channel in zip(channels, gate.channels, strict=True):
            if channel.producer_slot in self._hosted:
                self._inputs[channel.id] = input_channel
            else:
                assert self._network is not None
                self._network.register_input(channel.id, channel.producer_slot, input_channel)
        return gate

    def connect(self) -> None:
        """Joins the channels whose both ends are in this process."""
        for channel_id, subpartition, serialized in self._local:
            connect_local(subpartition, self._inputs[channel_id], serialized=serialized)
        self._local.clear()

    def is_drained(self) -> bool:
        """Whether everything handed to the network has left this process."""
        return self._network is None or self._network.is_drained

    @staticmethod
    def accumulators(tasks: Sequence[Task]) -> dict[TaskKey, dict[str, Any]]:
        """The user's counters, and Firesteel's own, of each task that has any: those of its operators added by name."""
        found: dict[TaskKey, dict[str, Any]] = {}
        for task in tasks:
            sums: dict[str, Any] = {}
            for chained in task.chain:
                for name, metric in chained.metrics.metrics.items():
                    if isinstance(metric, Counter):
                        name = name.removeprefix("user.")
                        sums[name] = sums.get(name, 0) + metric.count
            if sums:
                found[task.descriptor.vertex_id, task.descriptor.subtask] = sums
        return found
