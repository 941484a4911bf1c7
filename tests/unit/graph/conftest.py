from __future__ import annotations

from typing import Any

import pytest

from firesteel.api.output_tag import OutputTag
from firesteel.config.configuration import Configuration
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.job_graph_generator import create_job_graph
from firesteel.graph.stream_graph import StreamGraph
from firesteel.graph.stream_graph_generator import generate
from firesteel.graph.transformation import (
    OneInputTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
)
from firesteel.runtime.model.partitioner import ForwardPartitioner, KeyGroupPartitioner
from firesteel.runtime.operators.co import CoMapSpec
from firesteel.runtime.operators.inline import MapSpec
from firesteel.runtime.operators.sink import SinkSpec
from firesteel.runtime.operators.source import SourceSpec
from firesteel.spi.sink import Sink
from firesteel.spi.source import Boundedness, Source


class FakeSource(Source[Any]):
    def __init__(self, boundedness: Boundedness = Boundedness.BOUNDED):
        self.boundedness = boundedness

    def get_boundedness(self) -> Boundedness:
        return self.boundedness

    def create_enumerator(self, context: Any) -> Any:
        raise NotImplementedError

    def create_reader(self, context: Any) -> Any:
        raise NotImplementedError


class FakeSink(Sink):
    def create_writer(self, context: Any) -> Any:
        raise NotImplementedError


class Program:
    """Builds transformations the way the API does, and compiles them."""

    def __init__(self) -> None:
        self.transformations: list[Transformation] = []

    def source(self, name: str = "in", *, unbounded: bool = False, **settings: Any) -> Transformation:
        boundedness = Boundedness.CONTINUOUS_UNBOUNDED if unbounded else Boundedness.BOUNDED
        return SourceTransformation(SourceSpec(FakeSource(boundedness), None), name=name, **settings)

    def op(self, upstream: Transformation, name: str = "Map", **settings: Any) -> Transformation:
        return self._registered(OneInputTransformation(upstream, MapSpec(str), name=name, **settings))

    def keyed(self, upstream: Transformation, name: str = "Window", **settings: Any) -> Transformation:
        return self.op(PartitionTransformation(upstream, KeyGroupPartitioner(abs)), name, key_selector=abs, **settings)

    def forward(self, upstream: Transformation) -> Transformation:
        return PartitionTransformation(upstream, ForwardPartitioner())

    def union(self, *upstreams: Transformation) -> Transformation:
        return UnionTransformation(upstreams)

    def side_output(self, upstream: Transformation, tag: str) -> Transformation:
        return SideOutputTransformation(upstream, OutputTag(tag))

    def connect(self, first: Transformation, second: Transformation, **settings: Any) -> Transformation:
        settings.setdefault("name", "Co-Map")
        return self._registered(TwoInputTransformation(first, second, CoMapSpec(str), **settings))

    def sink(self, upstream: Transformation, name: str = "out", **settings: Any) -> Transformation:
        return self._registered(SinkTransformation(upstream, SinkSpec(FakeSink()), name=name, **settings))

    def _registered(self, transformation: Transformation) -> Transformation:
        self.transformations.append(transformation)
        return transformation

    def stream_graph(self, **config: str) -> StreamGraph:
        configuration = Configuration()
        for key, value in config.items():
            configuration.set_string(key, value)
        return generate(self.transformations, configuration, "job")

    def job_graph(self, **config: str) -> JobGraph:
        return create_job_graph(self.stream_graph(**config))


@pytest.fixture
def program() -> Program:
    return Program()


@pytest.fixture
def new_program() -> type[Program]:
    return Program
