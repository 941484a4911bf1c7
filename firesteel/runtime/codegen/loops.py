"""Code generation: turns an operator chain into one Python loop over a batch, like whole-stage code generation.

For ``map(f) → filter(g) → key_by(k)`` the generated function is, in essence::

    def process(values, timestamps):
        for v0 in values:
            v1 = f(v0)
            if g(v1):
                route[k(v1)](v1)

There is no call per operator and no object per record beyond what the user's functions make. Each line knows the
operator it belongs to and the variable that holds its element, so that an error can name both (``LoopSource``).
Two variants are generated on demand, for batches with and without timestamps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from firesteel.api.output_tag import OutputTag
from firesteel.runtime.codegen.functions import converted_function
from firesteel.runtime.codegen.inlining import code_location, inline_expression, inline_expression_of_two, tuple_fields
from firesteel.runtime.codegen.ownership import Ownership, Shape, copy_batch, keeps_nothing
from firesteel.runtime.codegen.tuple_removal import without_tuples
from firesteel.types.copying import IMMUTABLE, copy_value

if TYPE_CHECKING:
    from firesteel.runtime.time.timers import InternalTimerService
    from firesteel.types.conversion import Conversion

__all__ = [
    "GENERATED_PREFIX",
    "LOOPS",
    "Loop",
    "LoopLine",
    "LoopOperator",
    "LoopSource",
    "LoopTarget",
    "LoopWriter",
    "PartsLoop",
    "compile_loop",
    "compile_loop_over_parts",
]

GENERATED_PREFIX = "<firesteel chain "
ROOM_CHECK_INTERVAL = 1024
_serial = itertools.count(1)

Loop = Callable[[Sequence[Any], Sequence[int] | None], None]
PartsLoop = Callable[[Iterable[Any]], None]


class LoopTarget(Protocol):
    """A consumer of records in a loop: an operator of the chain, or an output."""

    @property
    def discards(self) -> bool:
        """Whether records written here are of no consequence."""
        ...

    @property
    def keeps_records(self) -> bool:
        """Whether a record may be referenced after it was written here."""
        ...

    def write(self, writer: LoopWriter, value: str) -> None:
        """Writes the lines that process the record in a variable."""
        ...

    def batch_function(self) -> Loop | None:
        """Returns the function that takes whole batches in place of generated lines, if there is one."""
        ...


class LoopOperator(LoopTarget, Protocol):
    """An operator of the chain, as the lines of a loop need it."""

    reuses_objects: bool
    results: Ownership
    usual_shape: Shape | None
    type_check: Callable[[Any], None] | None

    def conversion(self, tag: OutputTag | None) -> Conversion | None:
        """Returns how results, or those of a side output, become values of their declared type, if they must here."""
        ...

    @property
    def name(self) -> str:
        """The name of the operator."""
        ...

    @property
    def timer_services(self) -> Sequence[InternalTimerService]:
        """Timers of the operator."""
        ...

    @property
    def process_context(self) -> Any:
        """The context that a process function is called with, if it is one."""
        ...

    def note_shape(self, result: Any) -> None:
        """Records one of the first results."""
        ...

    def consumers(self, tag: OutputTag | None) -> Sequence[LoopTarget]:
        """Returns what reads the results, or a side output."""
        ...

    def tags(self) -> Sequence[OutputTag]:
        """Returns the side outputs that are read."""
        ...


@dataclass(frozen=True)
class LoopLine:
    """Who a generated line belongs to, and the variable that holds the element it works on."""

    operator: LoopOperator | None
    element: str | None
    what: str = ""
    user_code: tuple[str, int] | None = None
    """File and line of the user function called here; one whose body was inlined has no frame of its own."""
    output: LoopTarget | None = None
    """The output whose key selector is called here: an error belongs to the operator behind it."""


@dataclass
class LoopSource:
    """A generated function's text and the meaning of its lines, found by file name when an error is explained."""

    name: str
    text: str
    lines: dict[int, LoopLine] = field(default_factory=dict)


LOOPS: WeakValueDictionary[str, LoopSource] = WeakValueDictionary()
"""By file name. A loop's own globals keep its source: with the loop go the operators of the job that it names."""


class LoopWriter:
    """Collects the lines of one generated function."""

    def __init__(
        self,
        with_timestamps: bool,
        checked: bool,
        keyed: LoopOperator | None = None,
        in_parts: bool = False,
        ownership: Ownership = Ownership.EXCLUSIVE,
    ):
        self.with_timestamps = with_timestamps
        self.checked = checked
        self.keyed = keyed
        """The operator whose current key is set by whoever calls the loop, or gives it the next part."""
        self._in_parts = in_parts
        self.timestamp = "t"
        self._lines: list[tuple[int, str, LoopLine]] = []
        self._prologue: list[str] = []
        self._epilogue: list[str] = []
        self._last: list[str] = []
        self._room_check: list[str] = []
        self._bound: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._variables = itertools.count(1)
        self._depth = 3 if in_parts else 2
        self._operators: list[LoopOperator] = []
        self._user_code: tuple[str, int] | None = None
        self._ownership = {"v0": ownership}
        """Who may change the record in a variable; if it is not said, a function may have kept it."""
        self._shapes: dict[str, Shape] = {}
        """What the record in a variable usually looks like."""

    # -- what operators call ------------------------------------------------------------------------

    def new_variable(self, prefix: str) -> str:
        """A name not used before in this function."""
        return f"{prefix}{next(self._variables)}"

    def bind(self, hint: str, value: Any) -> str:
        """Makes an object available to the function under a name."""
        name = self._names.get(id(value))
        if name is None:
            name = f"{hint}_{len(self._bound)}"
            self._bound[name] = value
            self._names[id(value)] = name
        return name

    def call(self, function: Callable[[Any], Any], value: str) -> str:
        """The expression that applies a function to a variable: inlined where that is safe, else a call."""
        converted = converted_function(function)
        if converted is not None:
            return converted.write(self.new_variable("r"), self.call(converted.call, value), self.bind)
        inlined = inline_expression(function)
        if inlined is None:
            self._user_code = code_location(function)
            return f"{self.bind('f', function)}({value})"
        self._user_code = (inlined.file, inlined.line)
        return inlined.applied_to(value, self._free_names(function, inlined.free_names))

    def call_with_two(self, function: Callable[[Any, Any], Any], first: str, second: str) -> str:
        """The same for a function of two variables."""
        inlined = inline_expression_of_two(function)
        if inlined is None:
            self._user_code = code_location(function)
            return f"{self.bind('f', function)}({first}, {second})"
        self._user_code = (inlined.file, inlined.line)
        return inlined.applied_to(first, self._free_names(function, inlined.free_names), second)

    def fields_of_two(self, function: Callable[[Any, Any], Any], first: str, second: str) -> list[str | None] | None:
        """The expressions of the fields of the tuple that a function of two variables makes, where it can be inlined.

        None stands for a field that the function takes from its first argument unchanged. See `tuple_fields`.
        """
        inlined = inline_expression_of_two(function)
        if inlined is None:
            return None
        self._user_code = (inlined.file, inlined.line)
        return tuple_fields(inlined, first, self._free_names(function, inlined.free_names), second)

    def _free_names(self, function: Any, names: Sequence[str]) -> dict[str, str]:
        """What to write for the names a function takes from its closure and its module."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        written = {}
        for name in names:
            if name in cells:
                written[name] = f"{self.bind('cell', cells[name])}.cell_contents"
            elif name in function.__globals__:
                written[name] = f"{self.bind('globals', function.__globals__)}[{name!r}]"
        return written

    def line(
        self,
        text: str,
        element: str | None = None,
        what: str = "",
        function: Callable[..., Any] | None = None,
        output: LoopTarget | None = None,
    ) -> None:
        """Adds a line that belongs to the operator being written, and calls the user's function if there is one."""
        operator = self._operators[-1] if self._operators else None
        user_code = self._user_code if function is None else code_location(function)
        self._lines.append((self._depth, text, LoopLine(operator, element, what, user_code, output)))
        self._user_code = None

    @contextmanager
    def block(
        self, header: str, element: str | None = None, function: Callable[..., Any] | None = None
    ) -> Iterator[None]:
        """Adds a header; lines added inside are its body."""
        self.line(header, element, function=function)
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    def prologue(self, text: str) -> None:
        """Adds a line that runs once, before the loop."""
        if text not in self._prologue:
            self._prologue.append(text)

    def epilogue(self, text: str) -> None:
        """Adds a line that runs once, after the loop."""
        self._last.append(text)

    def derive(self, result: str, value: str, function: Callable[..., Any]) -> None:
        """Declares that a variable holds the result of a function for the record in another one."""
        if not self._ownership.get(value, Ownership.SHARED).may_be_changed and keeps_nothing(function):
            self._ownership[result] = Ownership.EXCLUSIVE

    def show(self, value: str, predicate: Callable[..., Any]) -> None:
        """Declares that a function has seen the record in a variable, which stays in use."""
        if self._ownership.get(value) is Ownership.EXCLUSIVE and not keeps_nothing(predicate, is_predicate=True):
            self._ownership[value] = Ownership.SHARED

    def write_consumers(self, value: str) -> None:
        """Writes everything downstream of the operator being written, for a result in a variable."""
        operator = self._operators[-1]
        if self.checked and operator.type_check is not None:
            self.line(f"{self.bind('check', operator.type_check)}({value})", element=value, what="result")
        if self.checked and operator.results is Ownership.SHARED:
            self.line(f"{self.bind('note', operator.note_shape)}({value})")
        shape = self._shape_of(operator)
        if shape is not None:
            self._shapes[value] = shape
        if operator.results is Ownership.FIXED:
            self._ownership[value] = Ownership.FIXED
        elif operator.results is Ownership.TUPLE:
            self._ownership.setdefault(value, Ownership.TUPLE)
        self.write_targets(operator.consumers(None), self._write_conversion(value, operator.conversion(None)))

    def _write_conversion(self, value: str, conversion: Conversion | None) -> str:
        """Writes the conversion of a result to its type; returns the variable that holds it then."""
        if conversion is None:
            return value
        converted = self.new_variable("v")
        convert = f"{self.bind('convert', conversion.convert)}({value})"
        test = conversion.test(value, self.bind)
        text = convert if test == "False" else f"{value} if {test} else {convert}"
        self.line(f"{converted} = {text}", element=value, what="result")
        self._ownership[converted] = self._ownership.get(value, Ownership.SHARED)
        if value in self._shapes:
            self._shapes[converted] = self._shapes[value]
        return converted

    def write_tagged_consumers(self, value: str) -> None:
        """Like write_consumers, for results that may be ``(tag, value)``."""
        operator = self._operators[-1]
        tags = operator.tags()
        if not tags and all(target.discards for target in operator.consumers(None)):
            return
        # this runs for every result: a truth test of the tuple is cheaper than its length
        is_tagged = f"{value} and {value}[0].__class__ is {self.bind('OutputTag', OutputTag)}"
        shape = self._shape_of(operator)
        knows_tuples = shape is not None or operator.results is Ownership.TUPLE
        if not knows_tuples or not self._is_kept(operator.consumers(None)):
            with self.block(f"if {value}.__class__ is tuple and {is_tagged}:"):
                self._write_side_outputs(value)
            with self.block("else:"):
                self.write_consumers(value)
            return
        # one look at the result's class is enough to see that it needs neither a copy nor a side output
        if shape is None:
            with self.block(f"if {value}.__class__ is not tuple:"):
                self._write_copy(value, value)
        else:
            with self.block(f"if {self._is_of_shape(value, shape)}:"):
                pass
            is_tagged = f"{value}.__class__ is tuple and {is_tagged}"
        with self.block(f"elif {is_tagged}:"):
            self._write_side_outputs(value)
            self.write_room_check()
            self.line("continue")
        if shape is not None:
            with self.block("else:"):
                self._write_copy(value, value)
        self._ownership[value] = Ownership.EXCLUSIVE
        self.write_consumers(value)

    def _write_side_outputs(self, value: str) -> None:
        """Writes the consumers of a result ``(tag, value)``."""
        operator = self._operators[-1]
        tagged, side = self.new_variable("g"), self.new_variable("v")
        self.line(f"{tagged}, {side} = {value}", element=value)
        if operator.reuses_objects:
            self._ownership[side] = Ownership.FIXED
        for tag in operator.tags():
            with self.block(f"if {tagged}.tag_id == {tag.tag_id!r}:"):
                self.write_targets(operator.consumers(tag), self._write_conversion(side, operator.conversion(tag)))

    def write_room_check(self) -> None:
        """After each of possibly very many results of one record: make room downstream now and then."""
        operator = self._operators[-1]
        if not operator.tags() and all(target.discards for target in operator.consumers(None)):
            return
        self.prologue("n = 0")
        self.line("n += 1")
        with self.block(f"if n >= {ROOM_CHECK_INTERVAL}:"):
            self.line("n = 0")
            self._lines.append((self._depth, "#room", LoopLine(None, None)))

    def sets_key_of(self, operator: object) -> bool:
        """Whether the caller of the loop sets the current key of the operator."""
        return self.keyed is operator

    # -- downstream ---------------------------------------------------------------------------------

    def write_targets(self, targets: Sequence[LoopTarget], value: str) -> None:
        """Writes the consumers of one value, one after the other; each that keeps its record gets its own."""
        ownership = self._ownership.get(value, Ownership.SHARED)
        targets = [target for target in targets if not target.discards]
        if ownership is Ownership.FIXED:
            for target in targets:
                target.write(self, value)
        elif len(targets) == 1:
            if ownership.may_be_changed and targets[0].keeps_records:
                with self.block(self._unless_immutable(value, ownership)):
                    self._write_copy(value, value)
                self._ownership[value] = Ownership.EXCLUSIVE
            targets[0].write(self, value)
            self._ownership[value] = ownership
        elif targets:
            # all copies are made before a function can change the record
            names = [self.new_variable("v") for _ in targets]
            self.line(f"{' = '.join(names)} = {value}")
            with self.block(self._unless_immutable(value, ownership)):
                for name in names if ownership.may_be_changed else names[1:]:
                    self._write_copy(name, value)
            for target, name in zip(targets, names, strict=True):
                self._ownership[name] = Ownership.EXCLUSIVE
                target.write(self, name)

    def _is_kept(self, targets: Sequence[LoopTarget]) -> bool:
        """Whether there is a single consumer that keeps its records."""
        return [target.keeps_records for target in targets if not target.discards] == [True]

    def _unless_immutable(self, value: str, ownership: Ownership) -> str:
        if ownership is Ownership.TUPLE:
            return f"if {value}.__class__ is not tuple:"
        shape = self._shapes.get(value)
        if shape is not None:
            return f"if not ({self._is_of_shape(value, shape)}):"
        return f"if {value}.__class__ not in {self.bind('immutable', IMMUTABLE)}:"

    def _shape_of(self, operator: LoopOperator) -> Shape | None:
        """What the results of an operator were like when types were checked, if they were alike and small tuples."""
        shape = operator.usual_shape
        return None if operator.results is not Ownership.SHARED or self.checked or not shape else shape

    def _is_of_shape(self, value: str, shape: Shape) -> str:
        """The condition that a value is a tuple of values of these classes, which are immutable."""
        parts = [f"{value}.__class__ is tuple", f"len({value}) == {len(shape)}"]
        parts += [f"{value}[{i}].__class__ is {self.bind(kind.__name__, kind)}" for i, kind in enumerate(shape)]
        return " and ".join(parts)

    def _write_copy(self, name: str, value: str) -> None:
        self.line(f"{name} = {self.bind('copy', copy_value)}({value})", element=value, what="copying the record")

    @contextmanager
    def operator(self, operator: LoopOperator) -> Iterator[None]:
        """Lines added inside belong to the operator."""
        self._operators.append(operator)
        yield
        self._operators.pop()

    def collect(self, value: str, sink: Callable[[list[Any], list[int] | None], None], what: str) -> None:
        """Gathers values in a list and hands it over after the loop (or when it gets long)."""
        number = len(self._epilogue)
        # no prefix that new_variable is called with: these live through the whole loop
        out, add = f"out{number}", f"put{number}"
        out_ts, add_ts = f"out_t{number}", f"put_t{number}"
        bound = self.bind("take", sink)
        fresh = f"{out} = []; {add} = {out}.append"
        if self.with_timestamps:
            fresh += f"; {out_ts} = []; {add_ts} = {out_ts}.append"
        self.prologue(fresh)
        hand_over = f"{bound}({out}, {out_ts if self.with_timestamps else 'None'})"
        self._epilogue.append(f"if {out}: {hand_over}")
        self._room_check += [f"if {out}:", f"    {hand_over}", f"    {fresh}"]
        self.line(f"{add}({value})", element=value, what=what)
        if self.with_timestamps:
            self.line(f"{add_ts}({self.timestamp})")

    def at_room_check(self, text: str) -> None:
        """Adds a line to every room check."""
        if text not in self._room_check:
            self._room_check.append(text)

    # -- result -------------------------------------------------------------------------------------

    def compile(self, name: str) -> Loop:
        """The finished function."""
        file_name = f"{GENERATED_PREFIX}{name} #{next(_serial)}>"
        flushes = self._write_part_end() if self._in_parts else []
        text = [
            f"def make({', '.join(self._bound)}):",
            f"  def process({'parts' if self._in_parts else 'values'}, timestamps):",
            *(f"    {line}" for line in self._prologue),
            *self._headers(),
        ]
        lines: dict[int, LoopLine] = {}
        for depth, line, owner in self._lines or [(self._depth, "pass", LoopLine(None, None))]:
            pad = "    " * (depth + 1)
            if line == "#room":
                text += [f"{pad}{extra}" for extra in self._room_check or ["pass"]]
            else:
                text.append(pad + line)
                lines[len(text)] = owner
        text += flushes
        text += [f"    {line}" for line in (*self._last, *self._epilogue)]
        text.append("  return process")
        source = "\n".join(text) + "\n"
        LOOPS[file_name] = loop_source = LoopSource(file_name, source, lines)
        scope: dict[str, Any] = {"__source__": loop_source}
        exec(compile(without_tuples(source), file_name, "exec"), scope)  # noqa: S102 - our own text
        loop: Loop = scope["make"](**self._bound)
        return loop

    def _headers(self) -> list[str]:
        pad = "    "
        headers = []
        if self._in_parts:
            headers = [
                f"{pad}for values, timestamps in parts:" if self.with_timestamps else f"{pad}for values in parts:"
            ]
            pad *= 2
        if self.with_timestamps:
            return [*headers, f"{pad}for v0, {self.timestamp} in zip(values, timestamps):"]
        return [*headers, f"{pad}for v0 in values:"]

    def _write_part_end(self) -> list[str]:
        """After each part: hands over results if there are many, or if timers are about to give more.

        What timers of the keys before gave is handed over first.
        """
        if not self._room_check:
            return []
        assert self.keyed is not None
        queues = [queue for timers in self.keyed.timer_services for queue in (timers.event, timers.processing)]
        timers = "".join(f" or {self.bind('timers', queue.live)}" for queue in queues)
        self.prologue("m = 0")
        lines = ["        m += len(values)", f"        if m >= {ROOM_CHECK_INTERVAL}{timers}:", "            m = 0"]
        lines += [f"            {line}" for line in self._room_check]
        flush = getattr(self.keyed.process_context, "end_groups", None)
        if flush is not None and self._epilogue:
            gathered = " or ".join(f"out{number}" for number in range(len(self._epilogue)))
            flush_line = f"if {gathered}: {self.bind('flush', flush)}()"
            lines.insert(3, f"            {flush_line}")
            lines.append(f"    {flush_line}")
        return lines


def compile_loop(
    name: str,
    targets: Sequence[LoopTarget],
    with_timestamps: bool,
    checked: bool = False,
    keyed: LoopOperator | None = None,
    ownership: Ownership = Ownership.EXCLUSIVE,
) -> Loop:
    """The function that carries a batch through the given consumers.

    ``keyed`` is an operator among them whose current key the caller sets. ``ownership`` is that of the batch's records.
    """
    if len(targets) == 1:
        direct = targets[0].batch_function()
        if direct is not None:
            return direct if not ownership.may_be_changed else _copying(direct, ownership)
    writer = LoopWriter(with_timestamps, checked, keyed, ownership=ownership)
    writer.write_targets(targets, "v0")
    return writer.compile(name)


def _copying(loop: Loop, ownership: Ownership) -> Loop:
    def copy_and_process(values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        loop(copy_batch(values, ownership), timestamps)

    return copy_and_process


def compile_loop_over_parts(keyed: LoopOperator, with_timestamps: bool, checked: bool = False) -> PartsLoop:
    """The function that carries records of a batch through its head, which come in parts, each of one key.

    A part is a sequence of values, with timestamps a pair of sequences. The caller sets the key of each part; what
    a part emitted has been passed on by then if the key has timers.
    """
    writer = LoopWriter(with_timestamps, checked, keyed, in_parts=True)
    writer.write_targets([keyed], "v0")
    loop: Any = writer.compile(keyed.name)
    return lambda parts: loop(parts, None)
