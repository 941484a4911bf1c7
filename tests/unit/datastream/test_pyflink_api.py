"""The public API against PyFlink's: same classes, methods and parameter names, with absences listed one by one."""

import importlib
import inspect
import json
from pathlib import Path

import pytest

API = json.loads(Path(__file__).with_name("pyflink_api.json").read_text())

ABSENT_CLASSES = {
    # PyFlink's own plumbing between API and workers; here it is in the runtime
    "data_stream.KeyedStream.AccumulateType",
    "functions.InternalIterableAllWindowFunction",
    "functions.InternalIterableProcessAllWindowFunction",
    "functions.InternalIterableProcessWindowFunction",
    "functions.InternalIterableWindowFunction",
    "functions.InternalProcessAllWindowContext",
    "functions.InternalProcessWindowContext",
    "functions.InternalSingleValueAllWindowFunction",
    "functions.InternalSingleValueProcessAllWindowFunction",
    "functions.InternalSingleValueProcessWindowFunction",
    "functions.InternalSingleValueWindowFunction",
    "functions.InternalWindowFunction",
    "functions.InternalWindowFunction.InternalWindowContext",
    "functions.PassThroughAllWindowFunction",
    "functions.PassThroughWindowFunction",
    "window.Min",
    "window.WindowOperationDescriptor",
}

ABSENT_METHODS = {
    # there is no Java
    "connectors.kafka.FlinkKafkaProducer.ignore_failures_after_transaction_timeout",
    "formats.avro.GenericRecordAvroTypeInfo.get_java_type_info",
    "functions.JavaFunctionWrapper.get_java_function",
    "output_tag.OutputTag.get_java_output_tag",
    "slot_sharing_group.MemorySize.get_java_memory_size",
    "slot_sharing_group.SlotSharingGroup.get_java_slot_sharing_group",
    # internal
    "window.ContinuousEventTimeTrigger.register_next_fire_timestamp",
    "window.ContinuousProcessingTimeTrigger.register_next_fire_timestamp",
}

JAVA_WRAPPERS = {
    "connectors.base.Sink",
    "connectors.base.Source",
    "connectors.kafka.FlinkKafkaConsumer",
    "connectors.kafka.FlinkKafkaProducer",
    "functions.SinkFunction",
    "functions.SourceFunction",
}
"""Constructed from a Java object in PyFlink, although the parameter's name does not tell."""

REFUSED = {"connectors.kafka.FlinkKafkaConsumerBase", "connectors.kafka.FlinkKafkaProducerBase"}
"""Classes that can be imported, but not created."""

PICKLING = {"__getstate__", "__setstate__"}
"""How PyFlink pickles its objects; since 3.11 every class of Python has the first."""

CLASSES = [
    pytest.param(module, name, id=f"{module}.{name}")
    for module, classes in API.items()
    for name in classes
    if f"{module}.{name}" not in ABSENT_CLASSES | REFUSED
]


def find_class(module, name):
    found = importlib.import_module(f"firesteel.datastream.{module}")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def parameter_names(cls, method):
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    names = [marks.get(p.kind, "") + p.name for p in inspect.signature(getattr(cls, method)).parameters.values()]
    return names if isinstance(inspect.getattr_static(cls, method), staticmethod) else names[1:]


def are_optional(cls, method, names):
    parameters = inspect.signature(getattr(cls, method)).parameters
    return all(parameters[name].default is not inspect.Parameter.empty for name in names)


def is_comparable(qualified, method, expected):
    """Constructors are not where PyFlink's take Java objects, or nothing at all; nor is pickling."""
    if method != "__init__":
        return method not in PICKLING
    java = any(name.startswith("j_") for name in expected)
    return bool(expected) and not java and qualified not in JAVA_WRAPPERS


@pytest.mark.parametrize(("module", "name"), CLASSES)
def test_class_has_pyflinks_methods(module, name):
    cls = find_class(module, name)
    qualified = f"{module}.{name}"
    assert inspect.isclass(cls), f"{qualified} is missing"
    problems = {}
    for method, expected in API[module][name].items():
        if f"{qualified}.{method}" in ABSENT_METHODS or not is_comparable(qualified, method, expected):
            continue
        actual = parameter_names(cls, method) if hasattr(cls, method) else "missing"
        # optional parameters after PyFlink's are extensions
        if actual[: len(expected)] != expected or not are_optional(cls, method, actual[len(expected) :]):
            problems[method] = (expected, actual)
    assert problems == {}


@pytest.mark.parametrize("absent", sorted(ABSENT_CLASSES))
def test_class_listed_as_absent_is_absent(absent):
    module, name = next((m, absent[len(m) + 1 :]) for m in API if absent.startswith(f"{m}."))
    assert name in API[module]
    assert find_class(module, name) is None


@pytest.mark.parametrize("absent", sorted(ABSENT_METHODS))
def test_method_listed_as_absent_is_absent(absent):
    qualified, method = absent.rsplit(".", 1)
    module, name = next((m, qualified[len(m) + 1 :]) for m in API if qualified.startswith(f"{m}."))
    assert method in API[module][name]
    assert not hasattr(find_class(module, name), method)
