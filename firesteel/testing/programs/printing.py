"""Prints a program as a Python file that runs by itself."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from firesteel.api.state import MapStateDescriptor
from firesteel.common.time import Duration
from firesteel.common.watermark_strategy import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    WatermarkStrategy,
)
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.windowing.assigners import DynamicEventTimeSessionWindows, WindowAssigner
from firesteel.datastream.windowing.triggers import PurgingTrigger, Trigger
from firesteel.testing.programs.program import Program, Ref
from firesteel.testing.programs.running.building import Site, build
from firesteel.testing.programs.running.ways import Way

__all__ = ["print_program"]

_DIRECTORY = "<directory>"


def print_program(program: Program, way: Way, problems: list[str]) -> str:
    """Returns the text of a file that runs the program in that way and prints what is wrong with the results."""
    printer = _Printer()
    env = _Scribe("env", printer)
    faults = {fault.place for fault in way.faults if fault.is_in_function}
    trips: Any = {place: _Code(f"trips[{place!r}]") for place in faults}
    build(program, _Page(env, Path(_DIRECTORY), trips, printer=printer), printer.assign)
    program_code, way_code = printer.code(program, 1), printer.code(way, 1)
    printer.imports.add(("firesteel.testing.programs.running.replaying", "replay"))
    lines = [
        f'"""Program {program.seed}, run as {way.seed}.',
        "",
        *(problem.replace("\\", "\\\\").replace('"""', "'''") for problem in problems),
        '"""',
        "",
        *printer.import_lines(),
        "",
        "",
        "def build(env, directory, trips):",
        *(f"    {line}" for line in printer.lines),
        "",
        "",
        "# the same program for the oracle, and how it is run",
        f"PROGRAM = {program_code}",
        f"WAY = {way_code}",
        "",
        'if __name__ == "__main__":',
        "    replay(PROGRAM, WAY, build)",
        "",
    ]
    return "\n".join(lines)


class _Code:
    """An expression, as text."""

    def __init__(self, text: str):
        self.text = text


class _Scribe:
    """Stands for an environment or a stream, and writes down what is called on it."""

    def __init__(self, text: str, printer: _Printer):
        self._text = text
        self._printer = printer

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> _Scribe:
            while args and args[-1] is None and not kwargs:
                args = args[:-1]
            return self._printer.call(f"{self._text}.{name}", args, kwargs)

        return call


@dataclasses.dataclass
class _Page(Site):
    """Where a program is built whose calls are written down."""

    printer: _Printer = dataclasses.field(kw_only=True)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Writes down a call."""
        return self.printer.call(self.printer.name(function), args)

    def hold(self, stream: Any) -> Any:
        """Gives a stream a name."""
        return self.printer.hold(stream)


class _Printer:
    """Turns values into expressions, and remembers what has to be imported for them."""

    def __init__(self) -> None:
        self.imports: set[tuple[str, str]] = set()
        self.lines: list[str] = []
        self._held = 0

    def import_lines(self) -> list[str]:
        """Returns the import statements, by module."""
        modules = sorted({module for module, _ in self.imports})
        names = {module: sorted(name for one, name in self.imports if one == module) for module in modules}
        return [f"from {module} import {', '.join(names[module])}" for module in modules]

    def assign(self, ref: Ref, stream: Any) -> Any:
        """Writes a line that gives a stream a name, and returns what stands for the stream from then on."""
        return self._named(f"s{ref.node}" + (f"_{ref.tag}" if ref.tag else ""), stream)

    def hold(self, stream: Any) -> _Scribe:
        """Does so with a stream that has no name in the program."""
        self._held += 1
        return self._named(f"h{self._held}", stream)

    def _named(self, name: str, stream: Any) -> _Scribe:
        self.lines.append(f"{name} = {stream._text}")
        return _Scribe(name, self)

    def call(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any] = MappingProxyType({})) -> _Scribe:
        """Returns what stands for the result of a call."""
        given = [self.code(arg) for arg in args] + [f"{key}={self.code(value)}" for key, value in kwargs.items()]
        return _Scribe(f"{function}({', '.join(given)})", self)

    def code(self, value: Any, depth: int = 0) -> str:
        """Returns an expression for a value."""
        if isinstance(value, (_Code, _Scribe)):
            return value.text if isinstance(value, _Code) else value._text
        if isinstance(value, str) and value.startswith(_DIRECTORY):
            return f'f"{{directory}}{value.removeprefix(_DIRECTORY)}"'
        if getattr(value, "program_text", None):
            return str(value.program_text)
        if isinstance(value, WatermarkStrategy):
            return self._strategy(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._dataclass(value, depth)
        if isinstance(value, tuple):
            return self._tuple(value, depth)
        return self._other(value)

    def _other(self, value: Any) -> str:
        if isinstance(value, enum.Enum):
            return f"{self.name(type(value))}.{value.name}"
        if isinstance(value, type) or inspect.isfunction(value):
            return self.name(value)
        if isinstance(value, OutputTag):
            return f"{self.name(OutputTag)}({value.tag_id!r})"
        if isinstance(value, MapStateDescriptor):
            return f"{self.name(MapStateDescriptor)}({value.name!r})"
        if isinstance(value, CollectSink):
            return f"{self.name(CollectSink)}({value.channel!r})"
        if isinstance(value, (WindowAssigner, Trigger)):
            return self._window_part(value)
        return repr(value)

    def name(self, of: Any) -> str:
        """Returns the name of a class, a function or a static method, which is imported."""
        name = of.__qualname__.partition(".")[0]
        if any(one == name and module != of.__module__ for module, one in self.imports):
            raise AssertionError(f"{name} is the name of two classes of the program")
        self.imports.add((of.__module__, name))
        return str(of.__qualname__)

    def _tuple(self, value: tuple[Any, ...], depth: int) -> str:
        parts = [self.code(part, depth + 1 if depth else 0) for part in value]
        comma = "," if len(parts) == 1 else ""
        if depth and sum(map(len, parts)) > 80 and not any(isinstance(part, (int, str, tuple)) for part in value):
            indent = "    " * depth
            return "(\n" + "".join(f"{indent}{part},\n" for part in parts) + "    " * (depth - 1) + ")"
        return f"({', '.join(parts)}{comma})"

    def _dataclass(self, value: Any, depth: int) -> str:
        given = []
        for field in dataclasses.fields(value):
            content = getattr(value, field.name)
            if field.init and not _is_default(field, content):
                given.append(f"{field.name}={self.code(content, depth + 1 if depth else 0)}")
        if depth and sum(map(len, given)) > 80:
            indent = "    " * depth
            inner = "".join(f"{indent}{part},\n" for part in given)
            return f"{self.name(type(value))}(\n{inner}{'    ' * (depth - 1)})"
        return f"{self.name(type(value))}({', '.join(given)})"

    def _strategy(self, strategy: WatermarkStrategy) -> str:
        generator: Any = strategy.create_watermark_generator()
        supplier: Any = strategy.generator_supplier
        name = self.name(WatermarkStrategy)
        if isinstance(generator, AscendingTimestampsWatermarks):
            text = f"{name}.for_monotonous_timestamps()"
        elif isinstance(generator, BoundedOutOfOrdernessWatermarks):
            text = f"{name}.for_bounded_out_of_orderness({self._millis(generator._delay - 1)})"
        elif dataclasses.is_dataclass(supplier):
            text = f"{name}.for_generator({self.code(supplier)})"
        else:
            text = f"{name}.no_watermarks()"
        if strategy.timestamp_assigner is not None:
            text += f".with_timestamp_assigner({self.code(strategy.timestamp_assigner)})"
        if strategy.idle_timeout_ms is not None:
            text += f".with_idleness({self._millis(strategy.idle_timeout_ms)})"
        if strategy.alignment is not None:
            group, drift = strategy.alignment.watermark_group, strategy.alignment.max_allowed_watermark_drift
            interval = strategy.alignment.update_interval
            text += f".with_watermark_alignment({group!r}, {self._millis(drift)}, {self._millis(interval)})"
        return text

    def _millis(self, millis: int) -> str:
        return f"{self.name(Duration)}.of_millis({millis})"

    def _window_part(self, value: Any) -> str:
        """Returns the constructor of an assigner or a trigger."""
        if isinstance(value, PurgingTrigger):
            return f"{self.name(PurgingTrigger)}({self.code(value.nested_trigger)})"
        if isinstance(value, DynamicEventTimeSessionWindows):
            return f"{self.name(DynamicEventTimeSessionWindows)}({self.code(value.extractor)})"
        self.name(type(value))
        return repr(value)


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return bool(value == field.default)
    return field.default_factory is not dataclasses.MISSING and bool(value == field.default_factory())
