"""Slot sharing groups: which operators share slots, and the resources of these slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from firesteel.common.errors import InvalidProgramError
from firesteel.config.memory_size import MemorySize as _MemorySize
from firesteel.graph.transformation import PhysicalTransformation, ResourceProfile, Transformation

__all__ = ["MemorySize", "SlotSharingGroup", "apply_slot_sharing_groups"]


class MemorySize(_MemorySize):
    """A number of bytes."""

    def __init__(self, bytes_size: int):
        super().__init__(bytes_size)

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """That many MiB."""
        return MemorySize(mebi_bytes << 20)

    def get_bytes(self) -> int:
        """The bytes."""
        return self.bytes

    def get_kibi_bytes(self) -> int:
        """The whole KiB."""
        return self.bytes >> 10

    def get_mebi_bytes(self) -> int:
        """The whole MiB."""
        return self.bytes >> 20

    def get_gibi_bytes(self) -> int:
        """The whole GiB."""
        return self.bytes >> 30

    def get_tebi_bytes(self) -> int:
        """The whole TiB."""
        return self.bytes >> 40


class SlotSharingGroup:
    """A name that operators share slots under, with the resources of each such slot; made with a builder."""

    def __init__(
        self,
        name: str,
        cpu_cores: float | None = None,
        task_heap_memory: MemorySize | None = None,
        task_off_heap_memory: MemorySize | None = None,
        managed_memory: MemorySize | None = None,
        external_resources: dict[str, float] | None = None,
    ):
        if not isinstance(name, str) or not name:
            raise InvalidProgramError(f"The name of a slot sharing group must be a non-empty string, got {name!r}.")
        self._name = name
        self._cpu_cores = cpu_cores
        self._task_heap_memory = task_heap_memory
        self._task_off_heap_memory = task_off_heap_memory
        self._managed_memory = managed_memory
        self._external_resources = dict(external_resources or {})

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Starts a group of that name."""
        return SlotSharingGroup.Builder(name)

    def get_name(self) -> str:
        """The name."""
        return self._name

    def get_managed_memory(self) -> MemorySize | None:
        """Memory that the state backend manages."""
        return self._managed_memory

    def get_task_heap_memory(self) -> MemorySize | None:
        """Memory of the tasks' own objects."""
        return self._task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Memory of the tasks outside Python's heap."""
        return self._task_off_heap_memory

    def get_cpu_cores(self) -> float | None:
        """Cores, also fractions of one."""
        return self._cpu_cores

    def get_external_resources(self) -> dict[str, float]:
        """Further resources by name, such as GPUs."""
        return dict(self._external_resources)

    def resource_profile(self) -> ResourceProfile | None:
        """The resources of each slot, or None if not specified."""
        profile = ResourceProfile(
            cpu_cores=self._cpu_cores,
            task_heap_memory_mb=_mebi(self._task_heap_memory),
            task_off_heap_memory_mb=_mebi(self._task_off_heap_memory),
            managed_memory_mb=_mebi(self._managed_memory),
            external_resources=tuple(sorted(self._external_resources.items())),
        )
        return None if profile == ResourceProfile() else profile

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SlotSharingGroup)
            and self._name == other._name
            and self.resource_profile() == other.resource_profile()
        )

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"SlotSharingGroup({self._name!r}, {self.resource_profile()})"

    class Builder:
        """Collects the settings of a :class:`SlotSharingGroup`."""

        def __init__(self, name: str):
            self._name = name
            self._cpu_cores: float | None = None
            self._task_heap_memory: MemorySize | None = None
            self._task_off_heap_memory: MemorySize | None = None
            self._managed_memory: MemorySize | None = None
            self._external_resources: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """Cores, also fractions of one."""
            if cpu_cores <= 0:
                raise InvalidProgramError(
                    f"The cores of slot sharing group '{self._name}' must be positive, got {cpu_cores}."
                )
            self._cpu_cores = cpu_cores
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Memory of the tasks' own objects."""
            self._task_heap_memory = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Memory of the tasks' own objects, in MiB."""
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Memory of the tasks outside Python's heap."""
            self._task_off_heap_memory = task_off_heap_memory
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Memory of the tasks outside Python's heap, in MiB."""
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Memory that the state backend manages."""
            self._managed_memory = managed_memory
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """Memory that the state backend manages, in MiB."""
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """A further resource, such as ``gpu``."""
            self._external_resources[name] = value
            return self

        def build(self) -> SlotSharingGroup:
            """The group; as in Flink, resources need both cores and task heap memory."""
            given = (self._task_off_heap_memory, self._managed_memory, self._external_resources or None)
            needed = {"cpu cores": self._cpu_cores, "task heap memory": self._task_heap_memory}
            missing = [what for what, value in needed.items() if value is None]
            if missing and (len(missing) == 1 or any(value is not None for value in given)):
                raise InvalidProgramError(
                    f"Slot sharing group '{self._name}' specifies resources but no {' and no '.join(missing)}.",
                    hint="Give both cores and task heap memory, or no resources at all.",
                )
            return SlotSharingGroup(
                self._name,
                self._cpu_cores,
                self._task_heap_memory,
                self._task_off_heap_memory,
                self._managed_memory,
                self._external_resources,
            )


def _mebi(size: MemorySize | None) -> int | None:
    # rounded up: a slot with less than was asked for is of no use
    return None if size is None else -(-size.bytes >> 20)


def apply_slot_sharing_groups(
    groups: Mapping[str, SlotSharingGroup], transformations: Iterable[Transformation]
) -> None:
    """Sets the resources of operators: groups may be registered after operators have named them."""
    for transformation in transformations:
        for operator in transformation.transitive_predecessors():
            group = groups.get(operator.slot_sharing_group or "")
            if group is not None and isinstance(operator, PhysicalTransformation):
                operator.resource_profile = operator.resource_profile or group.resource_profile()
